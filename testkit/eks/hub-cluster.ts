import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eksClusterArn, type EksCluster } from '../../src/aws/index.ts'

/** EKS clusters as the local AWS keeps them, with the secret of their token review, which it tells nobody. */
export interface KnownClusters {
  /** For `startLocalAws`. */
  state: Record<string, string>
  /** Where tokens for one of them are reviewed by access entries, below the endpoint of the local AWS. */
  reviewPath: (cluster: EksCluster) => string
}

/** The version of the format in which the local AWS keeps EKS. */
const format = 3

/** The clusters that the local AWS knows from its start. Through its API it would start a container for each. */
export const knownClusters = (all: readonly EksCluster[], authenticationMode: string): KnownClusters => {
  const secret = randomBytes(24).toString('base64url')
  const kept = (one: EksCluster) => ({
    name: one.name,
    arn: eksClusterArn(one),
    status: 'ACTIVE',
    version: '1.36',
    endpoint: 'https://127.0.0.1',
    certificateAuthority: { data: '' },
    accessConfig: { authenticationMode },
    identity: { oidc: { issuer: issuerOf(one) } },
    tags: {},
    _auth_token: secret,
  })
  const data = Object.fromEntries(all.map((one) => [`${one.account}\0${one.region}\0'${one.name}'`, kept(one)]))
  const clusters = { __account_region_scoped__: true, data }
  return {
    state: { eks: JSON.stringify({ __ministack_format__: format, payload: { clusters } }) },
    reviewPath: ({ account, region, name }) => `/_ministack/eks-auth/${account}/${region}/${name}/${secret}`,
  }
}

/** The issuer of a cluster's service-account tokens. */
export const issuerOf = ({ region, account, name }: EksCluster): string =>
  `https://oidc.eks.${region}.amazonaws.com/id/${account}-${name}`

/** The kubeconfig of a cluster's token webhook at a plain URL on loopback; answers its path. */
export const writeReviewConfig = (folder: string, cluster: string, server: string): string => {
  const path = join(folder, `${cluster}-token-review.kubeconfig`)
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'review', cluster: { server } }],
    users: [{ name: 'review', user: {} }],
    contexts: [{ name: 'review', context: { cluster: 'review', user: 'review' } }],
    'current-context': 'review',
  }
  writeFileSync(path, JSON.stringify(config))
  return path
}
