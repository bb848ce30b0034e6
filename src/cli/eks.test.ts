import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkedEksArn, eksSign, isEksArn, strategyWarnings } from './eks.ts'

const arn = 'arn:aws:eks:us-west-2:123456789012:cluster/hub'

test('R1.9 EKS is known by its version, its address, or the name in the kubeconfig', () => {
  const server = 'https://10.0.0.1:6443'
  assert.match(eksSign({ server, gitVersion: 'v1.31.2-eks-7f9249a' }) ?? '', /version/)
  assert.match(eksSign({ server: 'https://ABC.gr7.us-west-2.eks.amazonaws.com' }) ?? '', /address/)
  assert.match(eksSign({ server: 'https://ABC.yl4.cn-north-1.eks.amazonaws.com.cn' }) ?? '', /address/)
  assert.match(eksSign({ server, clusterName: arn }) ?? '', /kubeconfig calls it arn:/)
  assert.equal(
    eksSign({ server: 'https://eks.amazonaws.com.evil.example', gitVersion: 'v1.36.3', context: 'eks' }),
    undefined,
  )
})

test('R1.9 the supported combinations are stated, and any other is warned of', () => {
  assert.deepEqual(strategyWarnings(['awsirsa'], 'it is'), [])
  assert.deepEqual(strategyWarnings(['csr'], undefined), [])
  assert.deepEqual(strategyWarnings(['csr', 'awsirsa'], undefined), [])
  assert.match(
    strategyWarnings(['csr'], 'its version')[0] ?? '',
    /on EKS \(its version\).*use --registration-auth aws-irsa/,
  )
  assert.equal(strategyWarnings(['csr', 'awsirsa'], 'it is').length, 1)
  assert.match(strategyWarnings(['awsirsa'], undefined)[0] ?? '', /does not look like EKS/)
})

test('R1.13 an ARN that is malformed is refused with the part that is wrong', () => {
  assert.equal(checkedEksArn('--x', arn), arn)
  const wrong = (text: string): string => {
    try {
      return checkedEksArn('--hub-cluster-arn', text)
    } catch (error) {
      return (error as Error).message
    }
  }
  for (const [text, part] of [
    ['hub', 'does not begin with "arn:"'],
    [arn.replace('aws', 'gcp'), 'partition "gcp"'],
    [arn.replace('eks', 'ecs'), 'service is ecs'],
    [arn.replace('us-west-2', ''), 'no region'],
    [arn.replace('123456789012', '12'), 'account "12"'],
    [arn.replace('cluster/hub', 'nodegroup/hub'), '"nodegroup/hub" does not name a cluster'],
    [`${arn}/more`, '"cluster/hub/more" does not name a cluster'],
  ] as const) {
    assert.ok(wrong(text).startsWith('--hub-cluster-arn: '), wrong(text))
    assert.ok(wrong(text).includes(part), `${text}: ${wrong(text)}`)
  }
  assert.equal(isEksArn('kind-hub'), false)
})
