import { allKinds, group, managedClusterKinds, type Kind } from '../../api/index.ts'
import { namespace, operatorName } from '../../operator/contract.ts'
import { hubDeploymentName, initAgain, kubectl, startHubAgain, startOperator } from './advice.ts'
import { known, perhaps, type Rule, type Step } from './faults.ts'
import { deploymentIn, hubOf, whyNotRunning, type Snapshot } from './snapshot.ts'

type Of = Rule<Snapshot>

/** A leader renews long before its lease ends. Ours may be a clock that differs a little. */
const clockMarginMs = 20_000

export const kindId = ({ plural, group }: Pick<Kind, 'plural' | 'group'>): string => `${plural}.${group}`

/** Kinds without which no cluster can join, or get what it joined for. Those of the operators and of AWS may be elsewhere. */
const hubKinds = allKinds.filter(
  (kind) =>
    !managedClusterKinds.includes(kind) && ![group.operator, group.infrastructure].includes(kind.group as never),
)

const answers: Of = (s) => {
  const { silence } = hubOf(s)
  return silence && { ...silence, ...kubectl(s, 'hub', 'get', '--raw', '/readyz') }
}

const hasKinds: Of = (s) => {
  const served = known(hubOf(s).kinds)
  const missing = hubKinds.map(kindId).filter((kind) => !served.has(kind))
  return (
    missing.length > 0 && {
      fault: 'crd-missing',
      why: `the hub does not serve ${missing.slice(0, 5).join(', ')}${missing.length > 5 ? ` and ${missing.length - 5} more` : ''}`,
      ...initAgain(s),
    }
  )
}

const operatorRuns: Of = (s) => {
  const hub = hubOf(s)
  // A hub that somebody starts by other means has none, and needs none.
  if (known(hub.managers).length === 0) return undefined
  const why = whyNotRunning(deploymentIn(hub.deployments, namespace.operator, operatorName.hub))
  return (
    why !== undefined && {
      fault: 'operator-not-running',
      why: `the operator of the hub does not run: Deployment ${namespace.operator}/${operatorName.hub}: ${why}`,
      ...startOperator(s, 'hub'),
    }
  )
}

const deploymentRuns: Of = (s) => {
  const hub = hubOf(s)
  if (known(hub.managers).length === 0) return undefined
  const name = hubDeploymentName(s)
  const why = whyNotRunning(deploymentIn(hub.deployments, hub.namespace, name))
  return (
    why !== undefined && {
      fault: 'hub-not-running',
      why: `the hub does not run: Deployment ${hub.namespace}/${name}: ${why}`,
      ...startHubAgain(s),
    }
  )
}

const hasLeader: Of = (s) => {
  const { leader, managers, namespace } = hubOf(s)
  const lease = known(leader)
  if (!lease) {
    // A ClusterManager without a leader yet is what the Deployment is about.
    const why = `no hub has ever run in namespace ${namespace}; where it runs in another, say so with --hub-namespace`
    return perhaps(managers)?.length === 0 && { fault: 'hub-not-running', why, ...initAgain(s) }
  }
  const { renewTime, holderIdentity, leaseDurationSeconds = 15 } = lease.spec
  const silentMs = s.now - Date.parse(renewTime ?? '')
  const stale = !holderIdentity || !(silentMs <= leaseDurationSeconds * 1000 + clockMarginMs)
  return (
    stale && {
      fault: 'hub-not-running',
      why: holderIdentity
        ? `no replica of the hub has renewed its lease since ${renewTime ?? 'ever'}`
        : 'no replica of the hub leads: the last one has ended',
      ...startHubAgain(s),
    }
  )
}

const admits: Of = (s) => {
  const why = known(hubOf(s).admission)
  return (
    why !== undefined && {
      fault: 'webhook-down',
      why: `the hub's webhooks do not answer, so that nothing can be written: ${why}`,
      ...startHubAgain(s),
    }
  )
}

/** The hub itself, for whatever cluster. */
export const hubSteps: readonly Step<Snapshot>[] = [
  { step: 'the hub answers', rules: [answers] },
  { step: 'the kinds of the hub', rules: [hasKinds] },
  { step: 'the operator of the hub', rules: [operatorRuns] },
  { step: 'the hub runs', rules: [deploymentRuns, hasLeader] },
  { step: 'the webhooks of the hub', rules: [admits] },
]
