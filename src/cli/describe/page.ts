import { ageOf } from '../age.ts'
import { conditionLines } from '../installation.ts'
import { tableText } from '../output.ts'
import type { ClusterFacts } from './facts.ts'

/** The page for people. */
export const pageOf = (facts: ClusterFacts, now: number): string => {
  const { identity, credential } = facts
  const ago = (time: string): string => (time ? `${time} (${ageOf(time, now)} ago)` : 'never')
  return [
    `Cluster ${facts.name}`,
    ...rows([
      ['Created', ago(facts.created)],
      ['Set', facts.clusterSet],
      ['Kubernetes', facts.kubernetes],
      ['API server', facts.urls.join(', ')],
      ['Taints', facts.taints.join(', ')],
      ['Heartbeat', ago(facts.heartbeat)],
    ]),
    'Identity',
    ...rows([
      ['Strategy', identity.strategy],
      ['ARN', identity.arn],
      ['Cluster id', identity.id],
      ['Agent', identity.agent || 'the hub has recorded none'],
      ['Groups', identity.groups.join(', ')],
      ['Accepted', acceptance(identity)],
    ]),
    'Credential',
    ...rows([
      ['Expires', expiry(credential.expires, now) || 'the hub does not know'],
      ['Said', credential.said],
      ...credential.requests.map(({ name, state, by }): [string, string] => ['Request', `${name}: ${state}, by ${by}`]),
    ]),
    'Conditions',
    ...(facts.conditions.length > 0 ? conditionLines(facts.conditions) : ['  none']),
    'Add-ons',
    ...table(
      ['Name', 'Available', 'Namespace', 'Driver', 'Subject', 'Expires', 'Problem'],
      facts.addOns.flatMap(({ credentials, ...one }) =>
        (credentials.length > 0 ? credentials : [undefined]).map((of, at) => [
          ...(at === 0 ? [one.name, one.available, one.namespace] : ['', '', '']),
          of ? [of.driver, of.signer].filter(Boolean).join(' ') : '',
          of?.subject ?? '',
          expiry(of?.expires ?? '', now),
          at === 0 ? one.problem : '',
        ]),
      ),
    ),
    'Works',
    ...table(
      ['Name', 'Manifests', 'Applied', 'Available', 'Problem'],
      facts.works.map((one) => [one.name, String(one.manifests), one.applied, one.available, one.problem]),
    ),
    'Permissions',
    ...table(
      ['Name', 'Authorized', 'By', 'Applied', 'Problem'],
      facts.permissions.map((one) => [one.name, one.authorized, one.by, one.applied, one.problem]),
    ),
    'Service accounts',
    ...table(
      ['Name', 'Token', 'Expires', 'Secret', 'Rotates'],
      facts.serviceAccounts.map((one) => [
        one.name,
        one.reported,
        expiry(one.expires, now),
        one.secret,
        String(one.rotates),
      ]),
    ),
    ...(facts.hidden.length > 0 ? [`Not shown, because you may not look: ${facts.hidden.join(', ')}`] : []),
  ].join('\n')
}

const rows = (pairs: [string, string][]): string[] => {
  const shown = pairs.filter(([, text]) => text !== '')
  const width = Math.max(0, ...shown.map(([key]) => key.length)) + 2
  return shown.map(([key, text]) => `  ${`${key}:`.padEnd(width)}${text}`)
}

const table = (columns: string[], cells: string[][]): string[] =>
  cells.length === 0
    ? ['  none']
    : tableText({ columns, rows: cells, none: '' })
        .trimEnd()
        .split('\n')
        .map((line) => `  ${line}`)

const acceptance = ({ accepted, acceptedAutomaticallyOn: on }: ClusterFacts['identity']): string => {
  if (!accepted) return 'no'
  return on ? `yes, by a rule, on ${on}` : 'yes'
}

/** A time, and how far away it is. */
const expiry = (time: string, now: number): string => {
  const at = Date.parse(time)
  if (Number.isNaN(at)) return time
  // How long ago now was, then.
  return at <= now ? `${time} (over)` : `${time} (in ${ageOf(new Date(now).toISOString(), at)})`
}
