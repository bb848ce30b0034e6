import type { ServiceAccount } from '../../src/kube/index.ts'
import type { Container, Pod } from './kinds.ts'

const folder = '/var/run/secrets/eks.amazonaws.com/serviceaccount'
const volume = 'aws-iam-token'

/**
 * What EKS does to pods whose service account names an IAM role: a token for STS is mounted, and the variables that every AWS
 * SDK reads lead to it. Variables that the container sets itself stay.
 */
export const withRoleOfAccount = (pod: Pod, account: ServiceAccount | undefined): Pod => {
  const notes = account?.metadata.annotations ?? {}
  const role = notes['eks.amazonaws.com/role-arn']
  if (!role) return pod
  const audience = notes['eks.amazonaws.com/audience'] ?? 'sts.amazonaws.com'
  const expirationSeconds = Number(notes['eks.amazonaws.com/token-expiration'] ?? 86_400)
  const variables = { AWS_ROLE_ARN: role, AWS_WEB_IDENTITY_TOKEN_FILE: `${folder}/token` }
  const prepared = (container: Container): Container => {
    const own = new Set(container.env?.map(({ name }) => name))
    const added = Object.entries(variables).filter(([name]) => !own.has(name))
    return {
      ...container,
      env: [...(container.env ?? []), ...added.map(([name, value]) => ({ name, value }))],
      volumeMounts: [...(container.volumeMounts ?? []), { name: volume, mountPath: folder, readOnly: true }],
    }
  }
  const projected = { sources: [{ serviceAccountToken: { path: 'token', audience, expirationSeconds } }] }
  return {
    ...pod,
    spec: {
      ...pod.spec,
      volumes: [...(pod.spec.volumes ?? []), { name: volume, projected }],
      containers: pod.spec.containers.map(prepared),
      ...(pod.spec.initContainers && { initContainers: pod.spec.initContainers.map(prepared) }),
    },
  }
}
