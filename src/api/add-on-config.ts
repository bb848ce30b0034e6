import { array, integer, object, string } from './schema.ts'

const kind = {
  'group?': string('API group of the configuration kind.', { default: '', maxLength: 253 }),
  resource: string('Plural resource of the configuration kind.', { minLength: 1, maxLength: 253 }),
}

const at = {
  'namespace?': string('Namespace of the configuration; none if it is cluster-scoped.', { maxLength: 63 }),
  name: string('Name of the configuration.', { minLength: 1, maxLength: 253 }),
}

/** A configuration object of an add-on. */
export const config = (description: string) => object(description, { ...kind, ...at })

/** A configuration object without its kind, which stands beside it. */
export const configName = (description: string) => object(description, at)

/** A kind of configuration. */
export const configKind = (description: string) => object(description, kind)

const configHash = (description: string) => object(description, { ...at, 'specHash?': string('Hash of its spec.') })

const applied = {
  'desiredConfig?': configHash('What is wanted.'),
  'lastAppliedConfig?': configHash('What the add-on runs with.'),
}

/** Fields of a configuration reference on a ManagedClusterAddOn. */
export const referenceFields = {
  ...kind,
  'lastObservedGeneration?': integer('Generation of the configuration that was looked at.', { format: 'int64' }),
  ...applied,
}

/** Fields of a configuration reference on a ClusterManagementAddOn. */
export const installReference = object('How far one configuration has come.', {
  ...kind,
  ...applied,
  'lastKnownGoodConfig?': configHash('The last that was applied everywhere.'),
})

/** The default configuration of one kind. */
export const defaultReference = object('The default configuration of one kind.', {
  ...kind,
  'desiredConfig?': configHash('What is wanted.'),
})

/** What people see of an add-on. */
export const addOnMeta = object('What people see of the add-on.', {
  'displayName?': string('Its name for people.', { maxLength: 253 }),
  'description?': string('What it is for.', { maxLength: 4096 }),
})

/** The first form of configuration: one CRD, one object. v1alpha1 only, and superseded by configs. */
export const addOnConfiguration = object('The older single configuration of the add-on.', {
  'crdName?': string('Name of the CRD of the configuration.'),
  'crName?': string('Name of the configuration object.'),
  'lastObservedGeneration?': integer('Generation that was looked at.', { format: 'int64' }),
})

/** Configurations chosen for one installation. */
export const configs = array('Configurations that take the place of the defaults.', config('One configuration.'))
