import type { ManagedCluster } from '../../api/index.ts'
import { getCallerIdentity, type Caller } from '../../aws/index.ts'
import { isNotFound } from '../../kube/index.ts'
import {
  awsFrom,
  isGoing,
  mappingOf,
  newGrants,
  type Access,
  type Grants,
  type Outlook,
} from '../../registration/drivers/index.ts'
import { ReconcileError, sleep } from '../../runtime/index.ts'
import type { Cluster } from '../cluster.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { hubAwsSettings, type awsIrsaFlags, type HubAwsSettings } from './hub-settings.ts'
import { refusalFor } from './refusals.ts'
import { lackingRights } from './rights.ts'

/** What a cluster has in AWS and on the hub once it is let in. */
export interface AwsGrant {
  roleArn: string
  access: Access
  user: string
  /** Where the hub has written it down, so that its controller removes it. */
  record: string
  /** It was all there already, and was only looked at. */
  wasGranted: boolean
}

/** Gives clusters their access with the credentials of the person who types, by the code of the hub's own controller. */
export class Granting {
  readonly #cli: Cli<typeof awsIrsaFlags>
  readonly #cluster: Cluster
  #session: Promise<Session> | undefined

  constructor(cli: Cli<typeof awsIrsaFlags>, cluster: Cluster) {
    this.#cli = cli
    this.#cluster = cluster
  }

  /** With --dry-run: says what would be made. It is finished when it returns, and may be called again after any interruption. */
  async give(managed: ManagedCluster): Promise<AwsGrant> {
    const name = managed.metadata.name!
    const { hub, namespace, grants, caller } = await (this.#session ??= this.#begin(name))
    const cli = this.#cli
    try {
      const outlook = await grants.look(managed, cli.signal)
      if (outlook.isAssumed)
        cli.progress.warn(
          'EKS does not say how this hub maps roles, so aws-auth is used; if that is wrong, give --aws-access access-entries',
        )
      await this.#checkRights(name, outlook, namespace)
      if (cli.flags['dry-run']) sayPlan(cli, outlook, namespace)
      else await this.#grant(grants, managed, outlook)
      return grantOf(outlook, namespace)
    } catch (error) {
      cli.signal.throwIfAborted()
      throw refusalFor(error, { cluster: name, hub, caller: caller.arn })
    }
  }

  async close(): Promise<void> {
    ;(await this.#session?.catch(() => undefined))?.close()
  }

  /** Once for all clusters of a command. */
  async #begin(name: string): Promise<Session> {
    const cli = this.#cli
    const settings = await hubAwsSettings(cli, this.#cluster)
    const { hub } = settings
    const { aws, credentials } = awsFrom(cli.env, { region: hub.region })
    try {
      const caller = await getCallerIdentity(aws, await credentials(cli.signal), hub.region, cli.signal)
      if (caller.account !== hub.account)
        throw new CliError(
          `you are ${caller.arn} of account ${caller.account}, and the roles of this hub belong into account ${hub.account}`,
          { next: `use credentials of account ${hub.account}: AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret` },
        )
      const { client } = this.#cluster
      const grants = newGrants({ client, ...settings, aws, credentials, clock: cli.clock })
      return { ...settings, grants, caller, close: () => aws.close() }
    } catch (error) {
      aws.close()
      cli.signal.throwIfAborted()
      throw refusalFor(error, { cluster: name, hub })
    }
  }

  async #checkRights(name: string, { wanted, access }: Outlook, namespace: string): Promise<void> {
    const { signal } = this.#cli
    const lacking = await lackingRights(this.#cluster.client, { namespace, roleName: wanted.roleName, access, signal })
    if (lacking.length === 0) return
    throw new CliError(`you may not let cluster ${name} in: you may not ${lacking.join(', nor ')}`, {
      next: 'ask for these rights; nothing was made in AWS',
    })
  }

  async #grant(grants: Grants, managed: ManagedCluster, { wanted, access, record, isGranted }: Outlook): Promise<void> {
    const cli = this.#cli
    const how = access === 'aws-auth' ? 'entry in aws-auth' : 'access entry'
    await cli.progress.step(
      `${isGranted ? 'looking at' : 'making'} role ${wanted.roleArn} and its ${how}`,
      async ({ signal, seen }) => {
        // An earlier farewell that is not finished would take the new role away with the old one.
        if (record && isGoing(record)) await grants.revoke(record, signal)
        for (;;)
          try {
            return void (await grants.grant(managed, signal))
          } catch (error) {
            // The hub, or another person, is at the same thing.
            if (!isRace(error)) throw error
            seen('somebody else is at it, too')
            await sleep(cli.clock, 500, signal)
          }
      },
      {
        timeoutMs: cli.flags.timeout * 1000,
        next: 'what was made is written down; run the same command again to go on',
      },
    )
  }
}

interface Session extends HubAwsSettings {
  grants: Grants
  caller: Caller
  close: () => void
}

/** Somebody else wrote, or removed, the record meanwhile. */
const isRace = (error: unknown): boolean =>
  isNotFound(error) || (error instanceof ReconcileError && error.reason === 'RecordChanged')

const grantOf = ({ wanted, access, isGranted }: Outlook, namespace: string): AwsGrant => ({
  roleArn: wanted.roleArn,
  access,
  user: mappingOf(wanted, access).username,
  record: `${namespace}/${wanted.roleName}`,
  wasGranted: isGranted,
})

const sayPlan = (cli: Cli, { wanted, access, isGranted }: Outlook, namespace: string): void => {
  const { username } = mappingOf(wanted, access)
  const where = access === 'aws-auth' ? 'ConfigMap kube-system/aws-auth' : 'an EKS access entry'
  const is = isGranted ? 'is there already' : 'would be made'
  cli.progress.say(`${is}: role ${wanted.roleArn}, which ${wanted.arn} may take on`)
  cli.progress.say(`${is}: its mapping to user and group ${username}, in ${where}`)
  cli.progress.say(`${is}: its record, ConfigMap ${namespace}/${wanted.roleName}`)
}
