import type { TestContext } from 'node:test'
import { annotation, crds, installCrds, ManagedCluster } from '../src/api/index.ts'
import { failedFor, listAt, textAt } from '../src/aws/index.ts'
import { ConfigMap, type Client } from '../src/kube/index.ts'
import { awsIrsaHubDriver } from '../src/registration/drivers/aws-irsa/index.ts'
import type { HubDriver } from '../src/registration/drivers/driver.ts'
import { acceptance } from '../src/registration/hub/acceptance.ts'
import { keepSharedRoles } from '../src/registration/hub/shared-roles.ts'
import { silentLogger, systemClock } from '../src/runtime/index.ts'
import type { LocalEks } from './eks/index.ts'
import { runHub, type TestHub } from './registration-hub.ts'

type DriverOptions = Parameters<typeof awsIrsaHubDriver>[0]

export interface IrsaHubOptions extends Partial<DriverOptions> {
  /** Where AWS is, if not at the local EKS itself. */
  endpoint?: string
  /** Other drivers of the same hub. */
  beside?: HubDriver[]
  /** Auto-approval is on where there are patterns, unless told. */
  gates?: { managedClusterAutoApproval: boolean }
}

/** The acceptance of a hub on local EKS in this process, with its own role in AWS, until the test ends. */
export const runIrsaHub = async (
  t: TestContext,
  eks: LocalEks,
  { endpoint, beside = [], ...options }: IrsaHubOptions = {},
): Promise<TestHub> => {
  const admin = eks.hub.client()
  await installCrds(admin, crds({ conversion: 'none' }))
  const driver = awsIrsaHubDriver({
    client: eks.hub.client({ user: 'hub', groups: ['system:masters'], userAgent: 'test-hub' }),
    hubClusterArn: eks.hubArn,
    env: await eks.hubEnvironment(endpoint),
    clock: systemClock,
    log: silentLogger,
    ...options,
  })
  const drivers = [driver, ...beside]
  const start = (hub: TestHub['hub']): void => {
    for (const one of drivers) one.start?.(hub.manager)
  }
  const settings = { drivers, farewellMs: 1000 }
  const gates = options.gates ?? { managedClusterAutoApproval: (options.autoApprovedArnPatterns?.length ?? 0) > 0 }
  return runHub(t, eks.hub, { settings, gates, controllers: [start, keepSharedRoles, acceptance] })
}

/** A ManagedCluster as an agent on EKS makes it, or one that says what it likes. */
export const createIrsaCluster = (
  client: Client,
  name: string,
  arn: string,
  { accepts = true, more = {} }: { accepts?: boolean; more?: Record<string, string> } = {},
): Promise<ManagedCluster> => {
  const annotations = { [annotation.eksManagedClusterArn]: arn, ...more }
  return client.of(ManagedCluster).create({ metadata: { name, annotations }, spec: { hubAcceptsClient: accepts } })
}

/** What clusters have in the hub's account: names of roles, and principals of access entries. */
export const leftInAws = async (eks: LocalEks): Promise<string[]> => {
  const roles = await eks.hubAccount.iam('ListRoles', { MaxItems: 1000 })
  const names = listAt(roles, 'ListRolesResult', 'Roles').map((role) => textAt(role, 'RoleName')!)
  const { accessEntries } = await eks.client
    .json<{ accessEntries: string[] }>({
      service: 'eks',
      operation: 'ListAccessEntries',
      method: 'GET',
      path: '/clusters/hub/access-entries',
      region: eks.hubCluster.region,
      credentials: eks.hubAccount.root,
    })
    .catch((error: unknown) => {
      if (failedFor(error, 'NotFound')) return { accessEntries: [] } // a hub that is not on EKS
      throw error
    })
  return [...names.filter((name) => name.startsWith('ocm-hub-')), ...accessEntries].toSorted()
}

/** What `aws-auth` maps roles to; empty where there is none. */
export const mapRolesOf = async (client: Client): Promise<string> =>
  (await client.of(ConfigMap, 'kube-system').find('aws-auth'))?.data?.['mapRoles'] ?? ''

/** What the hub has written down that it gave. */
export const grantsOf = async (client: Client): Promise<ConfigMap[]> => {
  const labelSelector = 'registration.lanyard.io/aws-irsa=grant'
  return (await client.of(ConfigMap, 'open-cluster-management-hub').list({ labelSelector })).items
}
