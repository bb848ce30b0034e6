import { createHash } from 'node:crypto'
import {
  AddOnDeploymentConfig,
  AddOnTemplate,
  annotation,
  group,
  type ClusterManagementAddOn,
  type ManagedClusterAddOn,
} from '../../api/index.ts'
import { defaultInstallNamespace } from '../contract.ts'
import type { DeploymentConfig } from './definition.ts'
import type { AddOnHub } from './hub.ts'

type Config = NonNullable<NonNullable<ManagedClusterAddOn['spec']>['configs']>[number]
type Reference = NonNullable<NonNullable<ManagedClusterAddOn['status']>['configReferences']>[number]

/** What an add-on is configured with: the defaults of its ClusterManagementAddOn, and its own in their place. */
export interface Configuration {
  config: DeploymentConfig
  template?: AddOnTemplate | undefined
  /** Whether a template is asked for, be it there or not: then the add-on is ours to speak of. */
  namesTemplate: boolean
  references: Reference[]
  /** Why it cannot be used as it stands, in words that name the fix; empty when it can. */
  problems: string[]
}

/** A kind of configuration without a default has this name in v1beta1, where a name is required. */
const noDefault = '__reserved_no_default__'

const kindOf = ({ group: of = '', resource }: Config): string => `${resource}.${of}`
const deploymentConfigs = `${AddOnDeploymentConfig.plural}.${group.addon}`
const templates = `${AddOnTemplate.plural}.${group.addon}`

/** Hash of a spec, whatever the order of its keys: whether a configuration is still the one that was applied. */
export const specHash = (spec: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(sorted(spec)))
    .digest('hex')

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sorted(v)]),
  )
}

/** The chosen configurations, by kind: what the add-on itself names takes the place of the default. */
export const chosenConfigs = (
  addOn: ManagedClusterAddOn,
  catalogue: ClusterManagementAddOn | undefined,
): Map<string, Config> => {
  const defaults = (catalogue?.spec?.defaultConfigs ?? []).filter(({ name }) => name !== noDefault)
  return new Map([...defaults, ...(addOn.spec?.configs ?? [])].map((config) => [kindOf(config), config]))
}

/** Looks the chosen configurations up. */
export const configurationOf = (hub: AddOnHub, addOn: ManagedClusterAddOn): Configuration => {
  const chosen = chosenConfigs(addOn, hub.catalogue.get(addOn.metadata.name!))
  const result: Configuration = { config: {}, namesTemplate: chosen.has(templates), references: [], problems: [] }
  for (const [kind, config] of chosen) {
    const at = config.namespace ? `${config.namespace}/${config.name}` : config.name
    if (kind === deploymentConfigs) {
      const found = hub.configs.get(at)
      if (found) result.config = found.spec ?? {}
      take(result, config, found, `AddOnDeploymentConfig ${at}`)
    } else if (kind === templates) {
      const found = hub.templates.get(config.name)
      const fits = found?.spec.addonName === addOn.metadata.name
      if (found && !fits)
        result.problems.push(
          `AddOnTemplate ${config.name} is for add-on ${found.spec.addonName}: name one whose spec.addonName is ${addOn.metadata.name}`,
        )
      if (fits) result.template = found
      take(result, config, found, `AddOnTemplate ${config.name}`)
    } else {
      result.problems.push(
        `${kind} is no kind of configuration that is known here: remove it from spec.configs, or use ${deploymentConfigs} or ${templates}`,
      )
    }
  }
  return result
}

const take = (
  result: Configuration,
  { group: of, resource, namespace, name }: Config,
  found: { metadata: { generation?: number | undefined }; spec?: unknown } | undefined,
  what: string,
): void => {
  if (!found) result.problems.push(`${what} does not exist: create it, or remove it from spec.configs`)
  result.references.push({
    group: of,
    resource,
    ...(found?.metadata.generation === undefined ? {} : { lastObservedGeneration: found.metadata.generation }),
    desiredConfig: {
      ...(namespace ? { namespace } : {}),
      name,
      ...(found ? { specHash: specHash(found.spec) } : {}),
    },
  })
}

/** The references with what has arrived on the managed cluster. */
export const referencesWhen = (
  { references }: Configuration,
  applied: boolean,
  present: readonly Reference[] | undefined,
): Reference[] =>
  references.map((reference) => {
    const before = present?.find(({ group: g, resource }) => g === reference.group && resource === reference.resource)
    const lastAppliedConfig = applied ? reference.desiredConfig : before?.lastAppliedConfig
    return { ...reference, ...(lastAppliedConfig ? { lastAppliedConfig } : {}) }
  })

/** Where the add-on's agent lives. The API server fills the default into every configuration, so the default decides nothing. */
export const namespaceFor = (
  addOn: ManagedClusterAddOn,
  { config }: Configuration,
  definition: { installNamespace?: string | undefined } = {},
): string => {
  const configured = config.agentInstallNamespace
  if (configured && configured !== defaultInstallNamespace) return configured
  return (
    definition.installNamespace ?? addOn.metadata.annotations?.[annotation.installNamespace] ?? defaultInstallNamespace
  )
}
