/** The commands that doctor prints. Each can be run as it is, in a shell, by whoever ran doctor. */
import { secretName } from '../../registration/contract.ts'
import { holderAnnotation } from '../../registration/drivers/index.ts'
import { defaultName, deploymentName, namespace, operatorName } from '../../operator/contract.ts'
import { isHosted } from '../../operator/index.ts'
import { perhaps, type Advice, type Side } from './faults.ts'
import { deploymentIn, type RunningDeployment, type Snapshot } from './snapshot.ts'
import { agentNameIn, openRequests, pendingRequestIn } from './requests.ts'

/** A word as a shell takes it for one. */
export const shellWord = (word: string): string =>
  /^[\w.,:=@%+/-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`

const line = (words: readonly string[]): string => words.map(shellWord).join(' ')

export const kubectl = ({ words }: Snapshot, on: Side, ...rest: string[]): Advice => ({
  on,
  command: line(['kubectl', ...words[on], ...rest]),
})

export const ours = ({ words, program }: Snapshot, on: Side, ...rest: string[]): Advice => ({
  on,
  command: line([program, ...rest, ...words[on]]),
})

/** Installs the hub anew over what is there; nothing that is right is changed. */
export const initAgain = (s: Snapshot): Advice => ours(s, 'hub', 'init', '--wait')

/**
 * Joins anew with a new token, which goes from one command to the other and is seen by nobody. Without the hub's kubeconfig
 * the token has to be fetched there, and what is printed with it run here.
 */
export const joinAgain = (s: Snapshot): Advice => {
  const { hub, managed, words, program, name } = s
  if (!hub || !managed) return ours(s, 'hub', 'get', 'token')
  const token = `${line([program, 'get', 'token', ...words.hub])} | sed -n 's/^token=//p'`
  const place = ['--hub-apiserver', addressFor(s), ...(hub.caHash ? ['--ca-hash', hub.caHash] : [])]
  const force = managed.isHub ? ['--force'] : []
  // The kubeconfig of a cluster that is managed from there is there already.
  const mode = isHosted(perhaps(managed.klusterlet)?.spec ?? {}) ? ['--mode', 'hosted'] : []
  const who = ['--cluster-name', name, ...mode, ...force]
  const join = [program, 'join', ...words.managed, '--hub-token-file', '-', ...place, ...who]
  return { on: 'managed', command: `${token} | ${line(join)}` }
}

/** Where the agent finds the hub: as it does now, where that leads there; people may know the hub by another address. */
const addressFor = ({ hub, managed }: Snapshot): string => {
  const way = perhaps(managed?.way)
  return way && (way.kind === 'refused' || way.kind === 'open' || way.kind === 'forbidden') ? way.server : hub!.server
}

/** Lets a cluster in. Where somebody else may be meant, it names the certificate request of the agent that we see. */
export const acceptAgain = (s: Snapshot): Advice => {
  const open = openRequests(s)
  const own = pendingRequestIn(s) ?? (open.length === 1 ? open[0]?.metadata.name : undefined)
  const holder = perhaps(s.hub?.namespaces)?.find(({ metadata }) => metadata.name === s.name)?.metadata.annotations?.[
    holderAnnotation
  ]
  const other = holder !== undefined && holder !== agentNameIn(s)
  const named = own && open.some(({ metadata }) => metadata.name === own) && (open.length > 1 || other)
  return ours(s, 'hub', 'accept', '--clusters', s.name, ...(named ? ['--csr', own] : []))
}

/** Frees the name on this cluster, so that it can join under another. */
export const leave = (s: Snapshot): Advice => ours(s, 'managed', 'unjoin', '--cluster-name', s.name)

const podsOf = (s: Snapshot, on: Side, place: string, selector: string): Advice =>
  // One that hangs does not end by itself.
  kubectl(s, on, '-n', place, 'delete', 'pod', '-l', selector, '--grace-period=10')

const selectorOf = (deployment: RunningDeployment | undefined, app: string): string =>
  Object.entries(deployment?.spec.selector?.matchLabels ?? { app })
    .map((label) => label.join('='))
    .join()

/** Brings a Deployment that is there to life: pods where there should be none by its own word, else new ones. */
const startAgain = (s: Snapshot, on: Side, deployment: RunningDeployment): Advice => {
  const { name = '', namespace: place = '' } = deployment.metadata
  return deployment.spec.replicas === 0
    ? kubectl(s, on, '-n', place, 'scale', 'deployment', name, '--replicas=1')
    : podsOf(s, on, place, selectorOf(deployment, name))
}

/** The operator of one side. */
export const startOperator = (s: Snapshot, on: Side): Advice => {
  const view = on === 'hub' ? s.hub : s.managed
  const deployment = view && deploymentIn(view.deployments, namespace.operator, operatorName[on])
  if (deployment) return startAgain(s, on, deployment)
  return on === 'hub' ? initAgain(s) : joinAgain(s)
}

/** The name of the hub's Deployment. */
export const hubDeploymentName = ({ hub }: Snapshot): string =>
  deploymentName.hub(perhaps(hub?.managers)?.[0]?.metadata.name ?? defaultName.clusterManager)

/** The hub itself: starts it where it does not run, else starts its pods anew. */
export const startHubAgain = (s: Snapshot): Advice => {
  const name = hubDeploymentName(s)
  const deployment = perhaps(s.hub?.deployments)?.find(
    ({ metadata }) => metadata.namespace === s.hub?.namespace && metadata.name === name,
  )
  return deployment ? startAgain(s, 'hub', deployment) : startOperator(s, 'hub')
}

/** The Klusterlet of the agent. */
export const klusterletName = ({ managed }: Snapshot): string =>
  perhaps(managed?.klusterlet)?.metadata.name ?? defaultName.klusterlet

/** Where the agent runs, and its Deployment if we see it. */
export const agentOf = (s: Snapshot): { place: string; name: string; deployment: RunningDeployment | undefined } => {
  const { managed } = s
  const place = managed?.namespace ?? namespace.agent
  const name = deploymentName.agent(klusterletName(s))
  const deployment = perhaps(managed?.deployments)?.find(
    ({ metadata }) => metadata.namespace === place && metadata.name === name,
  )
  return { place, name, deployment }
}

/** A new agent pod: it begins with a fresh look at everything. */
export const startAgentAgain = (s: Snapshot): Advice => {
  const { place, name, deployment } = agentOf(s)
  if (deployment) return startAgain(s, 'managed', deployment)
  return s.managed && perhaps(s.managed.klusterlet)
    ? startOperator(s, 'managed')
    : podsOf(s, 'managed', place, selectorOf(undefined, name))
}

/** Lets the agent forget its credential: it asks for a new one at once. */
export const forgetCredential = (s: Snapshot): Advice =>
  kubectl(s, 'managed', '-n', agentOf(s).place, 'delete', 'secret', secretName.hub)

/** Takes one finalizer off, if it is still where it was seen. */
export const withoutFinalizer = (
  s: Snapshot,
  on: Side,
  object: { resource: string; name: string; namespace?: string | undefined },
  { finalizer, at }: { finalizer: string; at: number },
): Advice => {
  const path = `/metadata/finalizers/${at}`
  const patch = JSON.stringify([
    { op: 'test', path, value: finalizer },
    { op: 'remove', path },
  ])
  const place = object.namespace ? ['-n', object.namespace] : []
  return kubectl(s, on, ...place, 'patch', object.resource, object.name, '--type=json', '-p', patch)
}
