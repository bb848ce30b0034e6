import { type CustomResourceDefinition, type KubeObject, type Resource, resource } from '../kube/index.ts'
import type { Infer, JsonSchema, Schema } from './schema.ts'

/** A column that `kubectl get` prints. */
export interface Column {
  name: string
  type: 'string' | 'boolean' | 'integer' | 'date'
  jsonPath: string
  description?: string
  /** Above 0: only with `-o wide`. */
  priority?: number
}

/** One version of a kind. Its schema is a function: a process that only needs names never builds it. */
export interface Version {
  /** The object beside apiVersion, kind and metadata. A `status` field in it turns the status subresource on. */
  schema: () => Schema
  columns?: Column[]
  /** What clients of this version are told in a warning. */
  deprecated?: string
}

/** Where the API server finds the webhook that converts between versions. */
export type ConversionWebhook =
  | { url: string; caBundle?: string }
  | { service: { namespace: string; name: string; path: string; port: number }; caBundle?: string }

/** How objects of kinds with unlike versions are converted; `none` serves only the stored version of those kinds. */
export interface CrdOptions {
  conversion: ConversionWebhook | 'none'
}

interface Definition<V extends Record<string, Version>, S extends keyof V & string> {
  group: string
  kind: string
  plural: string
  shortNames?: string[]
  categories?: string[]
  scope: 'Cluster' | 'Namespaced'
  /** Labels of the CustomResourceDefinition itself. */
  labels?: Record<string, string>
  versions: V
  /** The version in etcd, and the one that our code speaks. */
  stored: S
  /** `webhook` when versions differ in shape; without it conversion only changes apiVersion. */
  conversion?: 'webhook'
}

/** Objects of one version. */
export type ObjectAt<V extends Version> = KubeObject & Infer<ReturnType<V['schema']>>

/** A kind is a `Resource` at its stored version; its other versions are beside it. */
export type Kind<V extends Record<string, Version> = Record<string, Version>, S extends keyof V = keyof V> = Resource<
  ObjectAt<V[S]>
> & {
  readonly versions: { readonly [N in keyof V]: Resource<ObjectAt<V[N]>> }
  readonly crd: (options: CrdOptions) => CustomResourceDefinition
}

/** The TypeScript type of a resource's objects: `type ManagedCluster = ObjectOf<typeof ManagedCluster>`. */
export type ObjectOf<R> = R extends { readonly objectType?: infer T } ? T : never

/** A kind of ours: names at once, schemas when the CRD is asked for. */
export const defineKind = <V extends Record<string, Version>, const S extends keyof V & string>(
  definition: Definition<V, S>,
): Kind<V, S> => {
  const at = (version: string) => ({
    group: definition.group,
    version,
    kind: definition.kind,
    plural: definition.plural,
    namespaced: definition.scope === 'Namespaced',
  })
  const versions = Object.fromEntries(Object.keys(definition.versions).map((name) => [name, resource(at(name))]))
  return {
    ...resource(at(definition.stored)),
    versions: versions as Kind<V, S>['versions'],
    crd: (options) => crdOf(definition, options),
  }
}

const crdOf = <V extends Record<string, Version>, S extends keyof V & string>(
  of: Definition<V, S>,
  { conversion }: CrdOptions,
): CustomResourceDefinition => {
  // A lossy answer is worse than none: without a webhook, versions that need one are not served.
  const onlyStored = of.conversion === 'webhook' && conversion === 'none'
  const singular = of.kind.toLowerCase()
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${of.plural}.${of.group}`, ...(of.labels && { labels: of.labels }) },
    spec: {
      group: of.group,
      names: {
        kind: of.kind,
        listKind: `${of.kind}List`,
        plural: of.plural,
        singular,
        ...(of.shortNames && { shortNames: of.shortNames }),
        ...(of.categories && { categories: of.categories }),
      },
      scope: of.scope,
      versions: Object.entries(of.versions).map(([name, version]) => ({
        name,
        served: !onlyStored || name === of.stored,
        storage: name === of.stored,
        ...versionOf(version),
      })),
      ...(of.conversion === 'webhook' && conversion !== 'none' && { conversion: webhook(conversion) }),
    },
  }
}

const versionOf = ({ schema, columns, deprecated }: Version) => {
  const json = rootOf(schema().json)
  return {
    ...(deprecated && { deprecated: true, deprecationWarning: deprecated }),
    ...(columns && { additionalPrinterColumns: columns }),
    ...(json.properties?.['status'] && { subresources: { status: {} } }),
    schema: { openAPIV3Schema: json },
  }
}

const rootOf = (json: JsonSchema): JsonSchema => ({
  ...json,
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    ...json.properties,
  },
})

const webhook = (clientConfig: ConversionWebhook) => ({
  strategy: 'Webhook',
  webhook: { conversionReviewVersions: ['v1'], clientConfig },
})

/** The age of an object, where other columns have replaced the default ones. */
export const ageColumn: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

/** The status of one condition as a column. */
export const conditionColumn = (name: string, type: string): Column => ({
  name,
  type: 'string',
  jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
})
