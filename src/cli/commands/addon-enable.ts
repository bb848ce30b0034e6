import {
  AddOnDeploymentConfig,
  annotation,
  ClusterManagementAddOn,
  conditionType,
  group,
  ManagedClusterAddOn,
} from '../../api/index.ts'
import { defaultInstallNamespace } from '../../addons/contract.ts'
import type { Client } from '../../kube/index.ts'
import { UsageError } from '../../main/flags.ts'
import { findCondition } from '../../runtime/index.ts'
import { addOnFlags, addOnsOf, chosenClusters, clustersFor, pairsOf } from '../add-on-choice.ts'
import { applyAll } from '../apply.ts'
import { withHub } from '../cluster.ts'
import { defineCommand, type Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { readManifests } from '../manifests.ts'
import { checkedName, missing, sayDryRun } from '../names.ts'
import { untilObject } from '../wait.ts'

type Config = NonNullable<NonNullable<ManagedClusterAddOn['spec']>['configs']>[number]

export default defineCommand({
  text: 'Enables add-ons on clusters. What is enabled already gets what the flags say; the rest of it stays.',
  flags: {
    ...addOnFlags,
    namespace: {
      help: 'Where they are installed on the clusters',
      default: defaultInstallNamespace,
      short: 'n',
      value: 'NAME',
    },
    labels: { help: 'key=value for the ManagedClusterAddOn, with commas or repeated', default: [], value: 'K=V' },
    annotate: { help: 'key=value as annotation, with commas or repeated', default: [], value: 'K=V' },
    config: { help: 'An AddOnDeploymentConfig on the hub to use', default: '', value: 'NAMESPACE/NAME' },
    'config-file': {
      help: 'A file with an AddOnDeploymentConfig, which is applied and used',
      default: '',
      value: 'FILE',
    },
    wait: { help: 'Until they are available', default: false },
  },
  args: [{ name: 'NAME', about: 'add-ons, as with --names', optional: true, many: true, completes: 'addons' }],
  examples: ['addon enable --names hello --clusters c1,c2', 'addon enable hello --all-clusters --wait'],
  run: async (cli) => {
    const { flags, signal } = cli
    const names = addOnsOf(flags, cli.args)
    const chosen = chosenClusters(flags)
    const namespace = checkedName('--namespace', flags.namespace)
    const [labels, said] = [pairsOf('--labels', flags.labels), pairsOf('--annotate', flags.annotate)]
    const annotations = {
      ...said,
      // The hub would put the usual one there anyway; only what differs is worth writing.
      ...(cli.given.has('namespace') ? { [annotation.installNamespace]: namespace } : {}),
    }
    if (flags.config && flags['config-file']) throw new UsageError('--config and --config-file: give one of them')
    const file = flags['config-file'] ? await configIn(cli, flags['config-file']) : undefined
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const clusters = await clustersFor(client, chosen, signal)
      const known = (await client.of(ClusterManagementAddOn).list({ metadataOnly: true, signal })).items
      const catalogue = known.map(({ metadata }) => metadata.name!)
      for (const name of names)
        if (!catalogue.includes(name))
          throw await missing('add-on', name, catalogue, `make it one: ${cli.program} addon create ${name} -f …`)
      const config = await configOf(cli, client, flags.config, file)
      const dryRun = flags['dry-run']
      for (const cluster of clusters)
        for (const name of names) {
          const addOns = client.of(ManagedClusterAddOn, cluster)
          const present = await addOns.find(name, { signal })
          const others = (present?.spec?.configs ?? []).filter((one) => one.resource !== config?.resource)
          const spec = { configs: config ? [...others, config] : others }
          const metadata = { name, namespace: cluster, labels, annotations }
          const now = present
            ? await addOns.patch(name, { merge: { metadata: { labels, annotations }, spec } }, { dryRun, signal })
            : await addOns.create({ metadata, spec }, { dryRun, signal })
          const same = present?.metadata.resourceVersion === now.metadata.resourceVersion
          cli.out.line(
            `add-on ${name} on cluster ${cluster}: ${present ? (same ? 'is enabled already' : 'updated') : 'enabled'}`,
          )
        }
      if (!flags.wait || dryRun) return
      for (const cluster of clusters) for (const name of names) await untilAvailable(cli, client, cluster, name)
    })
  },
})

const configIn = async (cli: Cli, path: string): Promise<AddOnDeploymentConfig> => {
  const [one, ...more] = await readManifests(cli, [path])
  const isConfig = one?.kind === AddOnDeploymentConfig.kind && one.apiVersion?.startsWith(`${group.addon}/`)
  if (!isConfig || more.length > 0) throw new CliError(`${path} must hold one AddOnDeploymentConfig and nothing else`)
  const { name, namespace } = one.metadata ?? {}
  if (!name || !namespace) throw new CliError(`${path}: metadata.name or metadata.namespace is missing`)
  return one
}

const configOf = async (
  cli: Cli,
  client: Client,
  said: string,
  file: AddOnDeploymentConfig | undefined,
): Promise<Config | undefined> => {
  const { signal } = cli
  const kind = { group: group.addon, resource: AddOnDeploymentConfig.plural }
  if (file) {
    await applyAll(client, [file], { dryRun: cli.flags['dry-run'], signal })
    return { ...kind, namespace: file.metadata.namespace, name: file.metadata.name! }
  }
  if (!said) return undefined
  const [namespace = '', name = '', more] = said.split('/')
  if (!namespace || !name || more !== undefined)
    throw new UsageError(`--config takes NAMESPACE/NAME, not ${JSON.stringify(said.slice(0, 80))}`)
  const { items } = await client.of(AddOnDeploymentConfig).list({ metadataOnly: true, signal })
  const known = items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
  if (!known.includes(said)) throw await missing('AddOnDeploymentConfig', said, known)
  return { ...kind, namespace, name }
}

const untilAvailable = (cli: Cli, client: Client, cluster: string, name: string): Promise<void> =>
  cli.progress.step(
    `waiting for add-on ${name} on cluster ${cluster}`,
    (step) =>
      untilObject(client.of(ManagedClusterAddOn, cluster), name, { step, clock: cli.clock }, async (addOn) => {
        if (!addOn) throw new CliError(`add-on ${name} on cluster ${cluster} was disabled meanwhile`)
        const available = findCondition(addOn, conditionType.addOn.available)
        if (available?.status === 'True') return { done: undefined }
        const { addOnFacts } = await import('../add-on-facts.ts')
        return { seen: addOnFacts(addOn).problem || available?.message || 'nobody has said anything yet' }
      }),
    {
      timeoutMs: cli.flags.timeout * 1000,
      next: `look at it: ${cli.program} get addons ${name} --clusters ${cluster}`,
    },
  )
