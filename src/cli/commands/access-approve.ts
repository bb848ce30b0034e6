import { ClusterPermission, ClusterSetPermission, conditionType } from '../../api/index.ts'
import { isConflict, isForbidden, type Client } from '../../kube/index.ts'
import { UsageError } from '../../main/flags.ts'
import { annotation, grantsOf, grantsState, specOf } from '../../permissions/contract.ts'
import { findCondition } from '../../runtime/index.ts'
import { hubRules, readerFor } from '../access/fleet.ts'
import { placeText, roleText, rulesText, subjectText } from '../access/words.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, type Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { missing, sayDryRun } from '../names.ts'
import { tableText } from '../output.ts'
import { ask, isInteractive } from '../stdin.ts'
import { untilObject } from '../wait.ts'

type Permission = ClusterPermission | ClusterSetPermission

const nameOf = ({ metadata }: Permission): string =>
  metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name!

const of = (client: Client, { metadata }: Permission) =>
  metadata.namespace ? client.of(ClusterPermission, metadata.namespace) : client.of(ClusterSetPermission)

const saidOf = (permission: Permission): string =>
  findCondition(permission, conditionType.clusterPermission.authorized)?.message ?? ''

/** Permissions that wait, of clusters and of sets. */
const waiting = async (client: Client, signal: AbortSignal): Promise<Permission[]> => {
  const [one, sets] = await Promise.all([
    client.of(ClusterPermission).list({ signal }),
    client.of(ClusterSetPermission).list({ signal }),
  ])
  return [...one.items, ...sets.items].filter((permission) => grantsState(permission) === 'waits')
}

/** What a person should have seen before they say yes. */
const explanation = async (cli: Cli, client: Client, permission: Permission): Promise<string> => {
  const rulesOf = specOf(permission).roleRefs?.length ? await hubRules(readerFor(cli, client)) : undefined
  const rows = grantsOf(permission, rulesOf).map((grant) => [
    subjectText(grant),
    'clusterSet' in (permission.spec ?? {})
      ? `clusters of set ${(permission as ClusterSetPermission).spec.clusterSet}`
      : `cluster ${permission.metadata.namespace}`,
    placeText(grant.place),
    roleText(grant),
    rulesText(grant.rules),
  ])
  return tableText({ columns: ['Subject', 'On', 'Where', 'Role', 'Allows'], rows, none: 'It gives nothing.' })
}

export default defineCommand({
  text: 'Approves a ClusterPermission (CLUSTER/NAME) or ClusterSetPermission (NAME) that waits because its author may not give what it gives. What is approved is what is there now: any edit needs a new approval. Without a name it lists those that wait.',
  flags: {
    yes: { help: 'Do not ask', default: false, short: 'y' },
    fingerprint: {
      help: 'Only if it still is what you have seen: its status.authorization.wanted',
      default: '',
      value: 'HEX',
    },
  },
  args: [{ name: 'NAME', about: 'the permission', optional: true }],
  examples: ['access approve', 'access approve c1/readers', 'access approve shop-readers --yes'],
  run: (cli) =>
    withHub(cli, async ({ client }) => {
      const [name] = cli.args
      if (!name) return listWaiting(cli, client)
      const permission = await found(cli, client, name)
      const wanted = permission.status?.authorization?.wanted
      if (grantsState(permission) !== 'waits' || !wanted) return notWaiting(cli, permission)
      if (cli.flags.fingerprint && cli.flags.fingerprint !== wanted)
        throw new CliError(`${name} is no longer what you have seen: its fingerprint is ${wanted}`, {
          next: `look at it again: ${cli.program} access approve ${name}`,
        })
      sayDryRun(cli)
      cli.stderr.write(
        `${await explanation(cli, client, permission)}${saidOf(permission).replace(/; to approve it: .*/s, '')}\n`,
      )
      if (!cli.flags.yes && !cli.flags.fingerprint && !cli.flags['dry-run']) await confirmed(cli, name)
      await approve(cli, client, permission, wanted)
      cli.out.line(`${name}: ${cli.flags['dry-run'] ? 'would be approved' : 'approved'}`)
    }),
})

const listWaiting = async (cli: Cli, client: Client): Promise<void> => {
  const all = await waiting(client, cli.signal)
  const rows = all.map((one) => [nameOf(one), saidOf(one).replace(/; to approve it: .*/s, '')])
  await cli.out.data('table', all, () => ({ columns: ['Name', 'Why'], rows, none: 'Nothing waits for approval.' }))
}

const found = async (cli: Cli, client: Client, name: string): Promise<Permission> => {
  const { signal } = cli
  const [first = '', second, more] = name.split('/')
  if (!first || second === '' || more !== undefined)
    throw new UsageError(`${JSON.stringify(name)} is not a permission; write CLUSTER/NAME, or NAME for that of a set`)
  const permission =
    second === undefined
      ? await client.of(ClusterSetPermission).find(first, { signal })
      : await client.of(ClusterPermission, first).find(second, { signal })
  if (permission) return permission
  const kind = second === undefined ? ClusterSetPermission.kind : ClusterPermission.kind
  throw await missing(kind, name, (await waiting(client, signal)).map(nameOf), 'those are the ones that wait')
}

const notWaiting = (cli: Cli, permission: Permission): void => {
  const state = grantsState(permission)
  const name = nameOf(permission)
  const { conditions = [] } = permission.status ?? {}
  if (state === 'invalid')
    throw new CliError(
      `${name} cannot be delivered: ${findCondition(permission, conditionType.clusterPermission.validation)?.message}`,
    )
  if (conditions.length === 0)
    throw new CliError(`the hub has not looked at ${name} yet`, {
      next: 'is lanyard hub running? Try again in a moment',
    })
  cli.out.line(`${name}: does not wait: ${saidOf(permission)}`)
}

const confirmed = async (cli: Cli, name: string): Promise<void> => {
  if (!isInteractive(cli))
    throw new CliError(`${name} is not approved: nobody can be asked here`, {
      next: 'when this is what you want: --yes, or --fingerprint with what you have seen',
    })
  const answer = await ask(cli, `Approve ${name}? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError(`${name} is not approved`)
}

const approve = async (cli: Cli, client: Client, permission: Permission, wanted: string): Promise<void> => {
  const { name = '', resourceVersion } = permission.metadata
  // With the version that was shown: an edit between the look and the approval is a conflict.
  const merge = { metadata: { resourceVersion, annotations: { [annotation.approve]: wanted } } }
  const dryRun = cli.flags['dry-run']
  const api = of(client, permission)
  await api.patch(name, { merge }, { dryRun, signal: cli.signal }).catch((cause: unknown) => {
    if (isConflict(cause))
      throw new CliError(`${nameOf(permission)} was changed meanwhile`, { next: 'look at it again', cause })
    if (isForbidden(cause))
      throw new CliError(`you may not approve ${nameOf(permission)}: ${(cause as Error).message}`, {
        next: `ask for the verb approve on ${api.resource.plural}`,
        cause,
      })
    throw cause
  })
  if (dryRun) return
  await cli.progress.step(
    `waiting for the hub to grant ${nameOf(permission)}`,
    (step) =>
      untilObject<Permission, void>(api as never, name, { step, clock: cli.clock }, (now) => {
        if (!now) throw new CliError(`${nameOf(permission)} was deleted meanwhile`)
        return now.status?.authorization?.granted === wanted ? { done: undefined } : { seen: saidOf(now) }
      }),
    { timeoutMs: cli.flags.timeout * 1000, next: 'is lanyard hub running?' },
  )
}
