/**
 * AWSCluster and its identities: who may act in which AWS account for which cluster. A tour:
 *
 * `chain.ts` walks from a cluster's identity to where its credentials begin, and `chain-checks.ts` judges every link: pure functions
 * over a `Directory`, which commands use as well. `permission.ts` says who may use an identity. The walk ends in a recipe (../aws),
 * never in a secret. `cluster.ts` checks each AWSCluster (`preflight.ts`) and reports; `identity.ts` keeps identities that are in use;
 * `auto-creator.ts` makes the singleton once; `secrets.ts` follows the Secrets that are referred to. Admission is in `webhooks.ts`.
 * What clusters have in AWS is made in `infrastructure/`, which acts only on what the others have let in.
 */
import { CredentialCache, type AwsClient, type CredentialSource } from '../aws/index.ts'
import type { Client } from '../kube/index.ts'
import { EventRecorder, silentLogger, systemClock, type Clock, type Logger, type Manager } from '../runtime/index.ts'
import { autoCreator } from './auto-creator.ts'
import { Claims } from './claims.ts'
import { checkClusters } from './clusters.ts'
import { identityWatches, reconcileIdentity } from './identity.ts'
import { countLookups, identityMetrics } from './metrics.ts'
import { recordsOf } from './records.ts'
import { keepRoles } from './roles.ts'
import type { IdentitySettings, Room } from './room.ts'
import { followSecrets } from './secrets.ts'
import { AccessKeys, accountTokens } from './sources.ts'

export { parseIamArn, type IamArn } from './arn.ts'
export { secretOf, sourceOf, walkChain, type Asked, type Chain, type Directory, type Link } from './chain.ts'
export { describeRefusal, type Refusal } from './chain-checks.ts'
export {
  annotation as identityAnnotation,
  clusterRole,
  controllerReference,
  describeReference,
  identityKey,
  identityResources,
  referenceOf,
  type Identity,
  type IdentityKind,
  type IdentityReference,
} from './contract.ts'
export {
  infrastructureActions,
  startInfrastructure,
  type InfrastructureOptions,
  type InfrastructureSettings,
} from './infrastructure/index.ts'
export { allowedNamespacesOf, allows, describeAllowed, namespacesAllowed, type NamespaceFacts } from './permission.ts'
export { askedBy } from './records.ts'
export { identityRoles } from './roles.ts'
export type { IdentitySettings, Room } from './room.ts'
export { AccessKeys, accountTokens } from './sources.ts'
export { clustersUsing, identitiesOn, identityOfCluster, sourceOfRole, type Users } from './users.ts'
export { identityWebhookConfigurations, identityWebhooks } from './webhooks.ts'

export interface IdentitiesOptions {
  client: Client
  aws: AwsClient
  /** The credentials of this process. */
  controller: CredentialSource
  /** Where this process keeps its own objects, and where plain names of Secrets are looked for. */
  namespace: string
  /** Where clusters act that name no region. */
  region: string
  settings?: Partial<IdentitySettings> | undefined
  instance?: string | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
}

const defaults: IdentitySettings = { autoControllerIdentityCreator: true, patienceMs: 2000 }

/** Adds everything that AWS identities need to the manager. The credentials of clusters are in `credentials`, by recipe. */
export const startIdentities = (
  manager: Manager,
  options: IdentitiesOptions,
): Room & { credentials: CredentialCache } => {
  const { client, aws, controller, namespace, region, instance = 'hub', random } = options
  const clock = options.clock ?? systemClock
  const log = options.log ?? silentLogger
  const keys = new AccessKeys(client)
  const credentials = new CredentialCache({
    aws,
    controller,
    secret: (secret, signal) => keys.read(secret, signal),
    token: accountTokens(client),
    clock,
    random,
    onLookup: countLookups(manager.metrics),
  })
  const room = {
    client,
    manager,
    records: recordsOf(manager, { controllerNamespace: namespace, defaultRegion: region }),
    credentials,
    claims: new Claims({ defaultRegion: region }),
    events: new EventRecorder({ client, controller: 'lanyard.io/aws-identities', instance, clock, log }),
    clock,
    log,
    settings: { ...defaults, ...options.settings },
  }
  const check = checkClusters(room)
  followSecrets(room, keys, check)
  manager.controller({
    name: 'aws-identities',
    reconcile: reconcileIdentity(room),
    watches: identityWatches(room.records),
  })
  autoCreator(room)
  keepRoles(room)
  identityMetrics(room)
  return room
}
