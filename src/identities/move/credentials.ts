import type { AWSClusterStaticIdentity } from '../../api/index.ts'
import { Secret, type Resource } from '../../kube/index.ts'
import { secretFaults } from '../access-keys.ts'
import { secretOf, sourceOf } from '../chain.ts'
import {
  controllerReference,
  describeReference,
  identityKey,
  identityResources,
  type Identity,
  type IdentityKind,
  type IdentityReference,
} from '../contract.ts'
import type { Found, Item, Obstacle } from './bundle.ts'
import type { Hub } from './discover.ts'
import { identitiesOf } from './graph.ts'

export interface Credentials {
  items: Item[]
  /** How many waves they take before anything else can be made. */
  waves: number
  obstacles: Obstacle[]
}

/**
 * From the clusters to the identities that they name, to those that these stand on, to the Secrets with their keys: by the fields that
 * say so. Owner references say the same only after a controller was there. What is missing on the way is an obstacle.
 */
export const followIdentities = async (
  hub: Hub,
  users: readonly Found[],
  signal: AbortSignal,
): Promise<Credentials> => {
  const obstacles: Obstacle[] = []
  const identities = new Map<string, Found>()
  const secrets = new Map<string, Found>()
  const wanted = new Map<string, IdentityReference>()
  for (const user of users)
    for (const reference of identitiesOf(user, controllerReference))
      if (reference.kind !== 'AWSServiceAccountIdentity') wanted.set(identityKey(reference, ''), reference)
  // A Map goes on to what is added while it is walked; what is in it is not added again, so loops end.
  for (const [key, reference] of wanted) {
    const resource = identityResources[reference.kind as IdentityKind] as unknown as Resource
    const object = await hub.client.of(resource).find(reference.name, { signal })
    if (!object) continue // the chain of the cluster says so, with what to do
    identities.set(key, { resource, object })
    const identity = object as unknown as Identity
    const source = sourceOf(reference, identity)
    if (source) wanted.set(identityKey(source, ''), source)
    if (reference.kind !== 'AWSClusterStaticIdentity') continue
    const { secretRef } = (identity as AWSClusterStaticIdentity).spec ?? {}
    if (!secretRef) continue
    const { namespace, name } = secretOf(identity as AWSClusterStaticIdentity, hub.controllerNamespace)
    const secret = await hub.client.of(Secret, namespace).find(name, { signal })
    const by = describeReference(reference)
    if (!secret)
      obstacles.push({
        what: `secret ${namespace}/${name} of ${by} does not exist at the source`,
        next:
          typeof secretRef === 'string'
            ? `create it, or say with --hub-namespace where the hub runs: plain names are looked for there`
            : `create it with AccessKeyID and SecretAccessKey`,
      })
    else {
      const faults = secretFaults(secret).map(({ field, message }) => `${field} ${message}`)
      if (faults.length > 0)
        obstacles.push({
          what: `secret ${namespace}/${name} of ${by} is no access key: ${faults.join('; ')}`,
          next: 'correct the secret',
        })
      else secrets.set(`${namespace}/${name}`, { resource: Secret as unknown as Resource, object: secret as never })
    }
  }
  const items = [
    ...[...identities.values()].map((found): Item => ({ ...found, fate: 'copy', wave: 0 })),
    ...[...secrets.values()].map((found): Item => ({ ...found, fate: 'copy', wave: 1 })),
  ]
  return { items, waves: 2, obstacles }
}
