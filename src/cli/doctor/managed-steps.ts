import { conditionType, managedClusterKinds } from '../../api/index.ts'
import { namespace, operatorName } from '../../operator/contract.ts'
import { secretName } from '../../registration/contract.ts'
import { findCondition } from '../../runtime/index.ts'
import { agentOf, joinAgain, initAgain, kubectl, startAgentAgain, startOperator } from './advice.ts'
import { hasCredential } from './credential.ts'
import { known, perhaps, unseen, type Rule, type Step } from './faults.ts'
import { kindId } from './hub-steps.ts'
import { isAlive, refuseElsewhere } from './life.ts'
import { deploymentIn, managedOf, whyNotRunning, type Snapshot } from './snapshot.ts'

type Of = Rule<Snapshot>

const answers: Of = (s) => {
  const { silence } = managedOf(s)
  return silence && { ...silence, ...kubectl(s, 'managed', 'get', '--raw', '/readyz') }
}

/** An agent may also be started by hand: then its secrets are all there is. */
const isByHand = (s: Snapshot): boolean => {
  const { klusterlet, bootstrap, credential } = managedOf(s)
  return !known(klusterlet) && (known(bootstrap) ?? known(credential)) !== undefined
}

const hasKlusterlet: Of = (s) => {
  const { klusterlet } = managedOf(s)
  refuseElsewhere(s)
  const missing = !known(klusterlet) && !isByHand(s)
  return (
    missing && {
      fault: 'klusterlet-missing',
      why: `there is no Klusterlet on this cluster: it has not been told to join a hub as ${s.name}`,
      ...joinAgain(s),
    }
  )
}

const stays: Of = (s) => {
  const klusterlet = known(managedOf(s).klusterlet)
  const { deletionTimestamp, name = '' } = klusterlet?.metadata ?? {}
  if (!klusterlet || !deletionTimestamp) return undefined
  const said = findCondition(klusterlet, conditionType.klusterlet.applied)?.message
  const operator = whyNotRunning(deploymentIn(managedOf(s).deployments, namespace.operator, operatorName.managed))
  return {
    fault: 'finalizer-stuck',
    why: `Klusterlet ${name} is being deleted since ${deletionTimestamp}: ${operator ? `its operator does not run, ${operator}` : (said ?? 'nothing is said about it')}`,
    ...startOperator(s, 'managed'),
  }
}

const hasKinds: Of = (s) => {
  if (isByHand(s)) return undefined // it brings them itself
  const served = known(managedOf(s).kinds)
  const missing = managedClusterKinds.map(kindId).filter((kind) => !served.has(kind))
  return (
    missing.length > 0 &&
    known(managedOf(s).klusterlet) !== undefined && {
      fault: 'crd-missing',
      why: `the managed cluster does not serve ${missing.join(', ')}`,
      ...joinAgain(s),
    }
  )
}

const operatorRuns: Of = (s) => {
  const { klusterlet, deployments } = managedOf(s)
  if (!known(klusterlet)) return undefined
  const why = whyNotRunning(deploymentIn(deployments, namespace.operator, operatorName.managed))
  return (
    why !== undefined && {
      fault: 'operator-not-running',
      why: `the operator of the agent does not run: Deployment ${namespace.operator}/${operatorName.managed}: ${why}`,
      ...startOperator(s, 'managed'),
    }
  )
}

const isRefusedByOperator: Of = (s) => {
  const klusterlet = known(managedOf(s).klusterlet)
  const said = klusterlet && findCondition(klusterlet, conditionType.klusterlet.applied)
  return (
    said?.reason === 'SpecRefused' && {
      fault: 'agent-not-running',
      why: `the operator cannot run the agent as Klusterlet ${klusterlet!.metadata.name} wants it: ${said.message}`,
      ...kubectl(s, 'managed', 'edit', 'klusterlet', klusterlet!.metadata.name!),
    }
  )
}

const agentRuns: Of = (s) => {
  const { klusterlet, deployments } = managedOf(s)
  if (!known(klusterlet)) return undefined
  known(deployments)
  const { place, name, deployment } = agentOf(s)
  const why = whyNotRunning(deployment)
  return (
    why !== undefined && {
      fault: 'agent-not-running',
      why: `the agent does not run: Deployment ${place}/${name}: ${why}`,
      ...startAgentAgain(s),
    }
  )
}

/** An agent with several hubs to choose from has other secrets. */
const severalHubs = (s: Snapshot): boolean =>
  perhaps(managedOf(s).klusterlet)?.spec?.registrationConfiguration?.bootstrapKubeConfigs?.type === 'LocalSecrets'

/** Whether it matters how the bootstrap secret is: an agent with a credential of its own does not need it. */
const needsBootstrap = (s: Snapshot): boolean => {
  if (hasCredential(s)) return false
  if (severalHubs(s)) return unseen('this agent has several hubs to choose from, which are not looked at one by one')
  return isByHand(s) || known(managedOf(s).klusterlet) !== undefined
}

const secretIn = ({ namespace }: { namespace: string }): string => `secret ${namespace}/${secretName.bootstrap}`

const hasBootstrap: Of = (s) =>
  needsBootstrap(s) &&
  known(managedOf(s).bootstrap) === undefined && {
    fault: 'no-bootstrap-secret',
    why: `${secretIn(managedOf(s))} does not exist: the agent does not know which hub to ask`,
    ...joinAgain(s),
  }

const bootstrapIsWhole: Of = (s) => {
  const way = needsBootstrap(s) ? known(managedOf(s).way) : undefined
  return way?.kind === 'broken' && { fault: 'bootstrap-secret-broken', why: way.why, ...joinAgain(s) }
}

/** With the credential that the agent would use. What the hub hears from the agent itself proves the way better than we can. */
const wayLeads: Of = (s) => {
  if (isAlive(s)) return undefined
  const way = known(needsBootstrap(s) ? managedOf(s).way : managedOf(s).ownWay)
  const secret = needsBootstrap(s) ? secretIn(managedOf(s)) : `secret ${managedOf(s).namespace}/${secretName.hub}`
  if (way.kind === 'unreachable')
    return {
      fault: 'hub-unreachable',
      why: `hub ${way.server}, which ${secret} names, does not answer from here: ${way.why}`,
      ...joinAgain(s),
    }
  if (way.kind === 'distrusted')
    return {
      fault: 'wrong-ca',
      why: `hub ${way.server} shows a certificate that is not from the CA in ${secret}: the hub has another CA now, or somebody stands in between`,
      ...joinAgain(s),
    }
  return undefined
}

const bootstrapIsGood: Of = (s) => {
  if (!needsBootstrap(s)) return undefined
  const way = known(managedOf(s).way)
  if (way.kind === 'refused')
    return {
      fault: 'bootstrap-token-expired',
      why: `hub ${way.server} does not take the token in ${secretIn(managedOf(s))}: it is expired, revoked, or from another hub`,
      ...joinAgain(s),
    }
  if (way.kind === 'forbidden')
    return {
      fault: 'bootstrap-forbidden',
      why: `hub ${way.server} does not let the user of ${secretIn(managedOf(s))} ask to join: ${way.why}`,
      ...initAgain(s),
    }
  if (way.kind === 'not-a-hub')
    return {
      fault: 'crd-missing',
      why: `${way.server}, which ${secretIn(managedOf(s))} names, is no hub: it does not know ManagedClusters`,
      ...initAgain(s),
    }
  return undefined
}

/** The managed cluster, up to the moment when its hub hears of it. */
export const managedSteps: readonly Step<Snapshot>[] = [
  { step: 'the managed cluster answers', rules: [answers] },
  { step: 'the cluster was told to join', rules: [hasKlusterlet, stays] },
  { step: 'the kinds of the managed cluster', rules: [hasKinds] },
  { step: 'the operator of the agent', rules: [operatorRuns] },
  { step: 'the agent runs', rules: [isRefusedByOperator, agentRuns] },
  { step: 'the bootstrap secret', rules: [hasBootstrap, bootstrapIsWhole] },
  { step: 'the way to the hub', rules: [wayLeads, bootstrapIsGood] },
]
