import {
  asCommands,
  eksClusterArn,
  hubRoleArn,
  hubRoleName,
  managedPrerequisite,
  managedRoleArn,
  parseRoleArn,
  type RequiredRole,
} from '../../aws/index.ts'
import { defaultName, roleAnnotation } from '../../operator/contract.ts'
import { claimsAnArn } from '../../registration/drivers/index.ts'
import { acceptAgain, agentOf, kubectl, shellWord, startAgentAgain } from './advice.ts'
import type { AwsView } from './aws-view.ts'
import { known, perhaps, unseen, type Advice, type Finding, type Rule, type Step } from './faults.ts'
import { clusterOf, hubOf, isLetIn, type Snapshot } from './snapshot.ts'

/** A rule about clusters that are known by AWS IAM; all others have nothing there. */
const rule =
  (look: (s: Snapshot, aws: AwsView) => Finding | false | undefined): Rule<Snapshot> =>
  (s) => {
    const cluster = clusterOf(s)
    if (s.aws) return look(s, s.aws)
    return cluster && claimsAnArn(cluster)
      ? unseen(`to look into AWS, ask about this cluster alone, with the kubeconfigs of both sides: doctor ${s.name}`)
      : undefined
  }

/** The agent comes through: whatever else may be unusual, nothing of it holds anything up. */
const comesThrough = ({ walk }: AwsView): boolean => perhaps(walk)?.kind === 'open'

/** AWS refuses what was signed more than five minutes away from its own time. */
const skewLimitMs = 5 * 60_000

const clocksAgree = rule((_, { skewMs, walk }) => {
  const skew = known(skewMs)
  const said = perhaps(walk)
  const off = Math.abs(skew) > skewLimitMs
  const why = off
    ? `the clock of the managed cluster is ${Math.round(Math.abs(skew) / 60_000)} minutes ${skew > 0 ? 'before' : 'behind'} the one of this machine, and AWS refuses what is signed more than five minutes off: one of them is wrong`
    : said?.kind === 'clock' && `AWS refuses what is signed here because of its time: ${said.why}`
  return why ? { fault: 'aws-clock-skew', why, on: 'managed', command: 'timedatectl set-ntp true' } : undefined
})

/** The annotation by which EKS gives the agent's pods their role, and new pods, which have it. */
const giveRole = (s: Snapshot, { pair }: AwsView, account: string): Advice => {
  const [place, name] = account.split('/') as [string, string]
  const value = `${roleAnnotation}=${managedRoleArn(pair)}`
  const { command } = kubectl(s, 'managed', '-n', place, 'annotate', 'serviceaccount', name, '--overwrite', value)
  const restart = agentOf(s).deployment ? ` && ${startAgentAgain(s).command}` : ''
  return { on: 'managed', command: command + restart }
}

const podsHaveRole = rule((s, aws) => {
  for (const { name, role } of known(aws.accounts)) {
    const expected = managedRoleArn(aws.pair)
    if (!role)
      return {
        fault: 'aws-no-credentials',
        why: `the agent has no credentials for AWS: service account ${name} has no annotation ${roleAnnotation}, which should name ${expected}`,
        ...giveRole(s, aws, name),
      }
    const account = accountIn(role)
    if (account !== aws.pair.managed.account)
      return {
        fault: 'aws-wrong-account',
        why: `the agent takes on ${role}, which is in account ${account ?? 'unknown'}; cluster ${s.name} is in account ${aws.pair.managed.account}, and its role is ${expected}`,
        ...giveRole(s, aws, name),
      }
  }
  return undefined
})

const accountIn = (role: string): string | undefined => {
  try {
    return parseRoleArn(role).account
  } catch {
    return undefined
  }
}

/** A command of the AWS CLI, with credentials of the account that the reason names. */
const awsIam = (action: string, role: RequiredRole, ...more: string[]): Advice => ({
  on: 'managed',
  command: ['aws', 'iam', action, '--role-name', role.name, ...more].map(shellWord).join(' '),
})

const requiredOf = (s: Snapshot, { pair, oidcProvider }: AwsView): RequiredRole =>
  managedPrerequisite(pair, {
    oidcProvider: known(oidcProvider),
    klusterlet: perhaps(s.managed?.klusterlet)?.metadata.name ?? defaultName.klusterlet,
  })

const ownRoleIsRight = rule((s, aws) => {
  if (comesThrough(aws)) return undefined
  const { isThere, trust, tags } = known(aws.ownRole)
  const required = requiredOf(s, aws)
  const arn = managedRoleArn(aws.pair)
  if (!isThere)
    return {
      fault: 'aws-role-missing',
      why: `account ${required.account} has no role ${required.name}, which the agent of cluster ${s.name} takes on; it has to be made there`,
      on: 'managed',
      command: asCommands(required).trim().replaceAll('\n', ' && '),
    }
  if (trust.length > 0)
    return {
      fault: 'aws-trust-mismatch',
      why: `${arn} does not trust the agent of cluster ${s.name}: ${trust[0]}`,
      ...awsIam('update-assume-role-policy', required, '--policy-document', JSON.stringify(required.trust)),
    }
  const wanted = Object.entries(required.tags).map(([Key, Value]) => ({ Key, Value }))
  return (
    tags.length > 0 && {
      fault: 'aws-tag-mismatch',
      why: `the role in the hub's account asks ${arn} for its tags, and ${tags.join(', ')}`,
      ...awsIam('tag-role', required, '--tags', JSON.stringify(wanted)),
    }
  )
})

/** Lets the hub look at all that it gave a cluster, and put right what differs. */
const giveAgain = (s: Snapshot, { pair, record }: AwsView): Advice => {
  if (!perhaps(record)) return acceptAgain(s)
  const patch = JSON.stringify({ data: { granted: '' } })
  const place = hubOf(s).namespace
  return kubectl(s, 'hub', '-n', place, 'patch', 'configmap', hubRoleName(pair), '--type=merge', '-p', patch)
}

const hubRoleIsRight = rule((s, aws) => {
  if (comesThrough(aws) || !isLetIn(s)) return undefined
  const { isThere, trust } = known(aws.hubRole)
  const arn = hubRoleArn(aws.pair)
  if (!isThere)
    return {
      fault: 'aws-role-missing',
      why: `the hub's account has no role ${arn}, though cluster ${s.name} is let in: somebody has deleted it`,
      ...giveAgain(s, aws),
    }
  return (
    trust.length > 0 && {
      fault: 'aws-trust-mismatch',
      why: `${arn} does not trust the role of cluster ${s.name}: ${trust[0]}`,
      ...giveAgain(s, aws),
    }
  )
})

const isMapped = rule((s, aws) => {
  if (comesThrough(aws) || !isLetIn(s)) return undefined
  const walk = perhaps(aws.walk)
  const missing = walk?.kind === 'unmapped' || !known(aws.mapping)
  return (
    missing && {
      fault: 'aws-mapping-missing',
      why: `the hub does not know whom ${hubRoleArn(aws.pair)} stands for: ${
        perhaps(aws.record) === 'access-entry' ? 'EKS has no access entry for it' : 'aws-auth has no entry for it'
      }`,
      ...giveAgain(s, aws),
    }
  )
})

/** Nobody with rights in the account could look why. */
const isTaken = rule((s, aws) => {
  const walk = known(aws.walk)
  if (walk.kind !== 'refused') return undefined
  const { hub, managed } = aws.pair
  const [role, account] =
    walk.at === 'own' ? [managedRoleArn(aws.pair), managed.account] : [hubRoleArn(aws.pair), hub.account]
  const arns = ['--hub-cluster-arn', eksClusterArn(hub), '--managed-cluster-arn', eksClusterArn(managed)]
  return {
    fault: 'aws-role-refused',
    why: `AWS does not let the agent of cluster ${s.name} take on ${role}: ${walk.why}. With credentials of account ${account} doctor says why`,
    on: 'managed',
    command: ['lanyard', 'aws', 'prerequisites', 'managed', ...arns, '--verify'].map(shellWord).join(' '),
  }
})

/** From the pod over both roles to the hub. Of clusters that are known by certificates it says nothing. */
export const awsSteps: readonly Step<Snapshot>[] = [
  { step: 'the clock, for AWS', rules: [clocksAgree] },
  { step: 'the role of the agent in AWS', rules: [podsHaveRole, ownRoleIsRight] },
  { step: 'the role on the hub in AWS', rules: [hubRoleIsRight, isMapped, isTaken] },
]
