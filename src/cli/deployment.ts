import { resource, type Client, type KubeObject } from '../kube/index.ts'
import type { Clock } from '../runtime/index.ts'
import type { Progress } from './progress.ts'
import { untilObject } from './wait.ts'

interface Resources {
  requests?: Record<string, string>
  limits?: Record<string, string>
}

interface Deployment extends KubeObject {
  spec: {
    replicas?: number
    template: {
      spec: {
        containers: { name: string; image: string; args?: string[]; resources?: Resources }[]
        imagePullSecrets?: { name: string }[]
      }
    }
  }
  status?: {
    observedGeneration?: number
    updatedReplicas?: number
    availableReplicas?: number
    conditions?: { type: string; status: string; message?: string }[]
  }
}

/** What the command line looks at in a Deployment. */
export const Deployment = resource<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})

/** Why a Deployment does not run as it should; undefined when it does. */
export const whyNotAvailable = (deployment: Deployment | undefined): string | undefined => {
  if (!deployment) return 'it does not exist yet'
  const { metadata, spec, status } = deployment
  const wanted = spec.replicas ?? 1
  if ((status?.observedGeneration ?? 0) < (metadata.generation ?? 0)) return 'nobody has looked at it yet'
  const failing = status?.conditions?.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True')
  if (failing) return failing.message ?? 'its replicas fail'
  const ready = Math.min(status?.updatedReplicas ?? 0, status?.availableReplicas ?? 0)
  return ready >= wanted ? undefined : `${ready} of ${wanted} replicas are available`
}

/** Waits until all replicas run what they should; with an image, until they run that one. */
export const untilAvailable = (
  { client, clock, progress, timeoutMs }: { client: Client; clock: Clock; progress: Progress; timeoutMs: number },
  namespace: string,
  name: string,
  image?: string,
): Promise<void> =>
  progress.step(
    `waiting for Deployment ${namespace}/${name}`,
    (step) =>
      untilObject(client.of(Deployment, namespace), name, { step, clock }, (deployment) => {
        const [container] = deployment?.spec.template.spec.containers ?? []
        const other = image && container && container.image !== image && `its image is ${container.image} still`
        const why = other || whyNotAvailable(deployment)
        return why === undefined ? { done: undefined } : { seen: why }
      }),
    {
      timeoutMs,
      next: `look at its pods: kubectl -n ${namespace} get pods; kubectl -n ${namespace} describe deployment ${name}`,
    },
  )
