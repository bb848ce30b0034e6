import { Secret, type Client } from '../kube/index.ts'
import { namespace, pullSecret } from '../operator/contract.ts'
import type { ManagedInstallOptions } from '../operator/index.ts'
import { Deployment } from './deployment.ts'

/** Flags that say which image is meant. Without one of them an installation keeps its own: `upgrade` is for another. */
const imageFlags = ['image', 'image-registry', 'bundle-version']

/**
 * What an installation was made with and is not said again: image, size, replicas, registry credentials, the role for works.
 * An operator that is installed over itself must not lose them.
 */
export const carriedOver = async (
  client: Client,
  operator: string,
  { said, given, signal }: { said: ManagedInstallOptions; given: ReadonlySet<string>; signal: AbortSignal },
): Promise<ManagedInstallOptions> => {
  const present = await client.of(Deployment, namespace.operator).find(operator, { signal })
  if (!present) return said
  const pod = present.spec.template.spec
  const [container] = pod.containers
  const credentials =
    pod.imagePullSecrets && said.pullCredentials === undefined
      ? (await client.of(Secret, namespace.operator).find(pullSecret, { signal }))?.data?.['.dockerconfigjson']
      : undefined
  const workRole = container?.args?.find((arg) => arg.startsWith('--work-role='))?.slice('--work-role='.length)
  return {
    ...(present.spec.replicas && { replicas: present.spec.replicas }),
    ...(container?.resources && {
      sizing: { type: 'ResourceRequirement', resourceRequirements: container.resources },
    }),
    ...(credentials && { pullCredentials: Buffer.from(credentials, 'base64').toString('utf8') }),
    ...(workRole && { workRole }),
    ...said,
    ...(container && !imageFlags.some((flag) => given.has(flag)) && { image: container.image }),
  }
}

/** The image that an operator runs. */
export const imageIn = async (client: Client, operator: string, signal: AbortSignal): Promise<string | undefined> =>
  (await client.of(Deployment, namespace.operator).find(operator, { signal }))?.spec.template.spec.containers[0]?.image
