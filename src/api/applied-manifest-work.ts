import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { array, object, string, time } from './schema.ts'

const appliedResource = object('An object that the work has made here.', {
  'group?': string('API group; empty is the core group.'),
  'version?': string('API version it was applied at.'),
  resource: string('Plural resource.'),
  'namespace?': string('Namespace of the object.'),
  name: string('Name of the object.'),
  'uid?': string('Its uid: an object made anew by somebody else is not ours to delete.'),
})

const schema = () =>
  object('What a ManifestWork has left on this cluster. It owns the objects, so that they go when it goes.', {
    spec: object('Which work it belongs to.', {
      'hubHash?': string('Hash of the hub: several hubs may have works of one name.'),
      'agentID?': string('The agent that applied it.'),
      manifestWorkName: string('The name of the work.'),
    }),
    'status?': object('What is here.', {
      'appliedResources?': array('The objects.', appliedResource),
      'evictionStartTime?': time('Since when the work is missing on the hub; after a grace period the objects go.'),
    }),
  })

/** What a ManifestWork has left on a managed cluster. */
export const AppliedManifestWork = defineKind({
  group: group.work,
  kind: 'AppliedManifestWork',
  plural: 'appliedmanifestworks',
  scope: 'Cluster',
  stored: 'v1',
  versions: { v1: { schema } },
})

/** An AppliedManifestWork as it is on a managed cluster. */
export type AppliedManifestWork = ObjectOf<typeof AppliedManifestWork>
