import type { Unstructured } from '../kube/index.ts'
import { compact, convertLossless, isObject, type Part, type Values } from './lossless.ts'
import { annotation, group, signer } from './names.ts'

/** A configuration kind without a default has this name in v1beta1, where a name is required. */
const noDefault = '__reserved_no_default__'

/** Each object of a list, turned into another; undefined for what is no such list. */
const each = (list: unknown, turn: (item: Values) => Values): Values[] | undefined =>
  Array.isArray(list) ? list.filter(isObject).map((item) => compact(turn(item))) : undefined

const orAbsent = (values: Values): Values | undefined => (Object.keys(values).length > 0 ? values : undefined)

const installNamespace: Part = {
  v1alpha1: { spec: ['spec'], annotation: ['metadata', 'annotations', annotation.installNamespace] },
  v1beta1: { spec: ['spec'], annotation: ['metadata', 'annotations', annotation.installNamespace] },
  up: (from) => {
    if (!isObject(from.spec)) return from
    const { installNamespace, ...spec } = from.spec
    return { spec, annotation: installNamespace ?? from.annotation }
  },
  down: ({ spec, annotation }) =>
    annotation === undefined ? { spec } : { spec: { ...(isObject(spec) ? spec : {}), installNamespace: annotation } },
}

const toKubeClient = (subject: unknown, driver: unknown): Values => {
  const who = isObject(subject) ? compact({ user: subject.user, groups: subject.groups }) : undefined
  return { type: 'kubeClient', kubeClient: orAbsent(compact({ driver, subject: who })) }
}

const toCustomSigner = (signerName: unknown, subject: unknown): Values => {
  if (!isObject(subject)) return { type: 'customSigner', customSigner: compact({ signerName }) }
  const { organizationUnit: organizationUnits, ...who } = subject
  return { type: 'customSigner', customSigner: { signerName, subject: compact({ ...who, organizationUnits }) } }
}

const fromCustomSigner = (customSigner: unknown): Values => {
  if (!isObject(customSigner)) return {}
  const { signerName, subject } = customSigner
  if (!isObject(subject)) return { signerName }
  const { organizationUnits: organizationUnit, ...who } = subject
  return { signerName, subject: compact({ ...who, organizationUnit }) }
}

const kubeClientOf = (registration: Values): Values =>
  isObject(registration.kubeClient) ? registration.kubeClient : {}

/** v1alpha1 knows registrations by their signer, and one driver for all of them. */
const registrations: Part = {
  v1alpha1: { registrations: ['status', 'registrations'], driver: ['status', 'kubeClientDriver'] },
  v1beta1: { registrations: ['status', 'registrations'] },
  up: ({ registrations, driver }) => ({
    registrations: each(registrations, ({ signerName, subject }) =>
      signerName === signer.kubeApiServerClient ? toKubeClient(subject, driver) : toCustomSigner(signerName, subject),
    ),
  }),
  down: ({ registrations }) => ({
    registrations: each(registrations, (registration) =>
      registration.type === 'kubeClient'
        ? { signerName: signer.kubeApiServerClient, subject: kubeClientOf(registration).subject }
        : fromCustomSigner(registration.customSigner),
    ),
    driver: each(registrations, (item) => item)
      ?.filter(({ type }) => type === 'kubeClient')
      .map((registration) => kubeClientOf(registration).driver)[0],
  }),
}

/** v1alpha1 also has namespace and name of the wanted configuration beside it. */
const configReferences: Part = {
  v1alpha1: { references: ['status', 'configReferences'] },
  v1beta1: { references: ['status', 'configReferences'] },
  up: ({ references }) => ({
    references: each(references, (reference) => ({ ...reference, namespace: undefined, name: undefined })),
  }),
  down: ({ references }) => ({
    references: each(references, (reference) => {
      const { namespace, name }: Values = isObject(reference.desiredConfig) ? reference.desiredConfig : {}
      return { ...reference, namespace, name }
    }),
  }),
}

/** A field of v1alpha1 that v1beta1 has no place for. */
const dropped = (...path: string[]): Part => ({
  v1alpha1: { field: path },
  v1beta1: {},
  up: () => ({}),
  down: () => ({}),
})

const supportedConfigs: Part = {
  v1alpha1: { configs: ['spec', 'supportedConfigs'] },
  v1beta1: { configs: ['spec', 'defaultConfigs'] },
  up: ({ configs }) => ({
    configs: each(configs, ({ defaultConfig, ...kind }) => ({
      ...kind,
      ...(isObject(defaultConfig) ? defaultConfig : { name: noDefault }),
    })),
  }),
  down: ({ configs }) => ({
    configs: each(configs, ({ namespace, name, ...kind }) =>
      name === noDefault ? kind : { ...kind, defaultConfig: compact({ namespace, name }) },
    ),
  }),
}

const addOnParts = {
  installNamespace,
  registrations,
  configReferences,
  addOnConfiguration: dropped('status', 'addOnConfiguration'),
}

const managementParts = { supportedConfigs, addOnConfiguration: dropped('spec', 'addOnConfiguration') }

/** Gives the same object in another version of its kind. */
export type Convert = (object: Unstructured, toApiVersion: string) => Unstructured

/** What a conversion webhook answers, by `group/Kind`. Kinds that are not here have one shape in all versions. */
export const conversions: Record<string, Convert> = {
  [`${group.addon}/ManagedClusterAddOn`]: (object, to) => convertLossless(addOnParts, object, to),
  [`${group.addon}/ClusterManagementAddOn`]: (object, to) => convertLossless(managementParts, object, to),
}
