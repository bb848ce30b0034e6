import { conditions } from './conditions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { resourceIdentifier } from './resource-identifier.ts'
import { array, boolean, embeddedObject, integer, object, string } from './schema.ts'

const jsonPath = object('One value to read.', {
  name: string('What the value is called in the status.', { minLength: 1 }),
  'version?': string('API version to read it at; any if absent.'),
  path: string('JSON path of the value, starting at the object.', { minLength: 1 }),
})

const ignoreField = object('Fields that the agent leaves to others.', {
  condition: string('When they are left alone.', { enum: ['OnSpokePresent', 'OnSpokeChange'] }),
  'jsonPaths?': array('As JSON paths.', string()),
  'jsonPointers?': array('As JSON pointers.', string()),
  'jqPathExpressions?': array('As jq path expressions.', string()),
})

const updateStrategy = object('How the object is kept as given.', {
  'type?': string('Update replaces, CreateOnly never touches it again, ReadOnly only looks.', {
    enum: ['Update', 'CreateOnly', 'ServerSideApply', 'ReadOnly'],
    default: 'Update',
  }),
  'serverSideApply?': object('Used with ServerSideApply.', {
    'force?': boolean('Take over fields that others own.'),
    'fieldManager?': string('Who owns the fields.', { default: 'work-agent', pattern: '^work-agent' }),
    'ignoreFields?': array('What is left to others.', ignoreField),
  }),
})

const manifestConfig = object('How chosen objects are kept and reported.', {
  resourceIdentifier: resourceIdentifier('Which objects; "*" in name and namespace matches any text.'),
  'feedbackRules?': array(
    'Which of their values are reported.',
    object('One rule.', {
      type: string('Values that are known for the kind, or chosen ones.', { enum: ['WellKnownStatus', 'JSONPaths'] }),
      'jsonPaths?': array('The chosen values.', jsonPath),
    }),
  ),
  'updateStrategy?': updateStrategy,
  'conditionRules?': array(
    'Conditions derived from the objects.',
    object('One condition.', {
      condition: string('Its type.', { maxLength: 316 }),
      type: string('Where it comes from.', { enum: ['WellKnownConditions', 'CEL'] }),
      'celExpressions?': array('Expressions over object that must all be true.', string()),
      'message?': string('Its message.', { maxLength: 32768 }),
      'messageExpression?': string('An expression that gives its message.'),
    }),
  ),
  'feedbackScrapeType?': string('Whether values are read from time to time or on every change.', {
    enum: ['Poll', 'Watch'],
    default: 'Poll',
  }),
})

const deleteOption = object('What happens to the objects when the work goes.', {
  'propagationPolicy?': string('Delete all, keep all, or keep some.', {
    enum: ['Foreground', 'Orphan', 'SelectivelyOrphan'],
    default: 'Foreground',
  }),
  'selectivelyOrphans?': object('Used with SelectivelyOrphan.', {
    'orphaningRules?': array('Which objects stay.', resourceIdentifier('An object that stays.')),
  }),
  'ttlSecondsAfterFinished?': integer('Delete the work this long after it is complete.', {
    format: 'int64',
    minimum: 0,
  }),
})

/** What a work holds; add-on templates hold the same. */
export const manifestWorkSpec = () =>
  object('What is wanted on the managed cluster.', {
    'workload?': object('The objects.', {
      'manifests?': array('Objects, in the order in which they are applied.', embeddedObject('One object.')),
    }),
    'deleteOption?': deleteOption,
    'manifestConfigs?': array('How chosen objects are kept and reported.', manifestConfig),
    'executor?': object('As whom the agent applies the objects; as itself if absent.', {
      subject: object('Who.', {
        type: string('What kind of subject.', { enum: ['ServiceAccount'] }),
        'serviceAccount?': object('A service account on the managed cluster.', {
          namespace: string('Its namespace.', { maxLength: 253 }),
          name: string('Its name.', { minLength: 1, maxLength: 253 }),
        }),
      }),
    }),
  })

const feedbackValue = object('One reported value.', {
  name: string('What it is called.'),
  fieldValue: object('The value, in the field that its type names.', {
    type: string('Its type.', { enum: ['Integer', 'String', 'Boolean', 'JsonRaw'] }),
    'integer?': integer('A number.', { format: 'int64' }),
    'string?': string('Text.', { maxLength: 1024 }),
    'boolean?': boolean('True or false.'),
    'jsonRaw?': string('Anything, as JSON text.', { maxLength: 1024 }),
  }),
})

const manifestStatus = object('One object, on the managed cluster.', {
  resourceMeta: object('Which object.', {
    'ordinal?': integer('Its place in the workload.'),
    'group?': string('API group.'),
    'version?': string('API version.'),
    'kind?': string('Kind.'),
    'resource?': string('Plural resource.'),
    'name?': string('Name.'),
    'namespace?': string('Namespace.'),
  }),
  'statusFeedback?': object('Its reported values.', {
    'values?': array('By name.', feedbackValue, { keys: ['name'] }),
  }),
  'conditions?': conditions('Whether it is applied and available.'),
})

const schema = () =>
  object('Objects for one managed cluster: the one that owns the namespace.', {
    spec: manifestWorkSpec(),
    'status?': object('What the agent reports.', {
      'conditions?': conditions('Whether all objects are applied and available.'),
      'resourceStatus?': object('Object by object.', { 'manifests?': array('In workload order.', manifestStatus) }),
    }),
  })

/** Objects that the hub wants on one managed cluster. */
export const ManifestWork = defineKind({
  group: group.work,
  kind: 'ManifestWork',
  plural: 'manifestworks',
  scope: 'Namespaced',
  stored: 'v1',
  versions: { v1: { schema } },
})

/** A ManifestWork as it is on the hub. */
export type ManifestWork = ObjectOf<typeof ManifestWork>
