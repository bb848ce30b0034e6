import { fileURLToPath } from 'node:url'
import type { ControlPlane } from '../control-plane.ts'
import { eventually } from '../eventually.ts'
import { Pod, type Container, type Deployment, type PodSpec } from './kinds.ts'
import { localAddress } from './node.ts'

/** testkit/programs/witness.ts, as a container's command. */
export const witness: Container = {
  name: 'witness',
  image: 'example.com/witness',
  command: [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    fileURLToPath(new URL('../programs/witness.ts', import.meta.url)),
  ],
  env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
  readinessProbe: { httpGet: { path: '/ready', port: 8000 }, periodSeconds: 1, timeoutSeconds: 10 },
}

/** A witness with more variables. */
export const witnessWith = (env: Record<string, string>, more: Partial<Container> = {}): Container => ({
  ...witness,
  ...more,
  env: [...witness.env!, ...Object.entries(env).map(([name, value]) => ({ name, value }))],
})

export const deployment = (
  name: string,
  containers: Container[],
  {
    replicas = 1,
    strategy,
    ...spec
  }: Partial<PodSpec> & Partial<Pick<Deployment['spec'], 'replicas' | 'strategy'>> = {},
): Deployment => ({
  metadata: { name, namespace: 'default' },
  spec: {
    replicas,
    ...(strategy && { strategy }),
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers, terminationGracePeriodSeconds: 20, ...spec } },
  },
})

/** Asks a witness. */
export const ask = async <T = unknown>(pod: Pod, path: string): Promise<T> => {
  const answer = await fetch(`http://${localAddress(pod.status!.podIP!)}:8000${path}`)
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}

/** The pods of a Deployment or Job, by their label. */
export const podsOf = async (plane: ControlPlane, selector: string): Promise<Pod[]> =>
  (await plane.client().of(Pod, 'default').list({ labelSelector: selector })).items

const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') ?? false

/** Waits until this many of its pods are ready, and no others are left. */
export const readyPods = (plane: ControlPlane, name: string, count = 1): Promise<Pod[]> =>
  eventually(
    async () => {
      const pods = await podsOf(plane, `app=${name}`)
      if (pods.length !== count || !pods.every(isReady))
        throw new Error(`${pods.length} pods: ${JSON.stringify(pods.map(({ status }) => status))}`)
      return pods
    },
    { timeoutMs: 120_000 },
  )
