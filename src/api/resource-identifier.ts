import { integer, object, string } from './schema.ts'

/** Names one object, or several where `*` stands in a name. */
export const resourceIdentifier = (description: string) =>
  object(description, {
    'group?': string('API group; empty is the core group.'),
    resource: string('Plural resource, such as configmaps.'),
    name: string('Name of the object.'),
    'namespace?': string('Its namespace; empty for cluster-scoped objects.'),
  })

const versioned = {
  group: string('API group; empty is the core group.'),
  'version?': string('API version.'),
  resource: string('Plural resource.'),
  'namespace?': string('Namespace of the object.'),
  name: string('Name of the object.'),
}

/** An object that the operator keeps. */
export const relatedResource = object('An object that the operator keeps.', versioned)

/** The generation of an object when the operator last wrote it: a later one means that somebody else did. */
export const resourceGeneration = object('The generation last written of one object.', {
  ...versioned,
  lastGeneration: integer('metadata.generation after the last write.', { format: 'int64' }),
})
