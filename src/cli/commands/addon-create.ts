import { AddOnTemplate, ClusterManagementAddOn, group } from '../../api/index.ts'
import { ClusterRole } from '../../kube/index.ts'
import { UsageError } from '../../main/flags.ts'
import { equal } from '../../runtime/index.ts'
import { checkedAddOn, pairsOf } from '../add-on-choice.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { CliError } from '../errors.ts'
import { readManifests } from '../manifests.ts'
import { missing, sayDryRun } from '../names.ts'

type Registration = NonNullable<AddOnTemplate['spec']['registration']>
type DefaultConfig = NonNullable<NonNullable<ClusterManagementAddOn['spec']>['defaultConfigs']>[number]

export default defineCommand({
  text: 'Makes an add-on out of manifests, without code: an AddOnTemplate NAME-VERSION, and the ClusterManagementAddOn NAME that uses it. A new version takes the place of the one before on all clusters; give it a new --version, and the old template stays to go back to.',
  flags: {
    filename: { help: 'Manifests: a file, a folder, or - for stdin', default: [], short: 'f', value: 'FILE' },
    version: { help: 'The version of the template', default: '0.0.1', value: 'VERSION' },
    'hub-registration': { help: 'The add-on gets a credential for the hub', default: false },
    'cluster-role-bind': {
      help: 'What it may do there: this ClusterRole, in the namespace of its cluster; with --hub-registration',
      default: '',
      value: 'NAME',
    },
    labels: { help: 'key=value for the ClusterManagementAddOn, with commas or repeated', default: [], value: 'K=V' },
    'install-on': {
      help: 'Enable it on clusters with these labels (key=value,…), or on all with *, also on later ones',
      default: '',
      value: 'LABELS',
    },
    overwrite: { help: 'Replace a template of this version that holds something else', default: false },
    'placement-ref': { help: 'This hub has no placements', default: [], hidden: true },
  },
  args: [{ name: 'NAME', about: 'the name of the add-on' }],
  examples: [
    'addon create hello -f manifests/',
    'addon create hello -f hello.yaml --version 0.0.2 --hub-registration --cluster-role-bind hello-agent',
  ],
  run: async (cli) => {
    const { filename, version, overwrite, labels, 'dry-run': dryRun } = cli.flags
    const name = checkedAddOn(cli.args[0] ?? '')
    if (cli.given.has('placement-ref'))
      throw new UsageError('--placement-ref: this hub has no placements; use --install-on key=value')
    if (filename.length === 0) throw new UsageError('-f is missing: give the manifests, or - for stdin')
    if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(version) || name.length + version.length > 252)
      throw new UsageError(`--version ${JSON.stringify(version.slice(0, 80))} cannot end a name: a-z, 0-9, . and -`)
    const role = cli.flags['cluster-role-bind']
    if (role && !cli.flags['hub-registration'])
      throw new UsageError('--cluster-role-bind needs --hub-registration: the role is for its credential')
    const installOn = await installAnnotation(cli.flags['install-on'])
    const manifests = await readManifests(cli, filename)
    const template = `${name}-${version}`
    const spec: AddOnTemplate['spec'] = {
      addonName: name,
      agentSpec: { workload: { manifests } },
      ...(cli.flags['hub-registration'] && { registration: registrationWith(role) }),
    }
    const meta = { labels: pairsOf('--labels', labels), ...(installOn && { annotations: installOn }) }
    sayDryRun(cli)
    await withHub(cli, async ({ client }) => {
      const { signal } = cli
      const [old, present, roles] = await Promise.all([
        client.of(AddOnTemplate).find(template, { signal }),
        client.of(ClusterManagementAddOn).find(name, { signal }),
        role ? client.of(ClusterRole).list({ metadataOnly: true, signal }) : undefined,
      ])
      const known = roles?.items.map(({ metadata }) => metadata.name!) ?? []
      if (role && !known.includes(role)) throw await missing('ClusterRole', role, known)
      const same = old !== undefined && equal(old.spec, spec)
      if (old && !same && !overwrite)
        throw new CliError(`there is an AddOnTemplate ${template} with something else in it`, {
          next: 'give another --version, or --overwrite to replace it on all clusters at once',
        })
      if (!old) await client.of(AddOnTemplate).create({ metadata: { name: template }, spec }, { dryRun, signal })
      else if (!same) await client.of(AddOnTemplate).update({ ...old, spec }, { dryRun, signal })
      cli.out.line(`AddOnTemplate ${template}: ${old ? (same ? 'unchanged' : 'updated') : 'created'}`)
      const wanted: DefaultConfig = { group: group.addon, resource: AddOnTemplate.plural, name: template }
      const others = (present?.spec?.defaultConfigs ?? []).filter((one) => one.resource !== AddOnTemplate.plural)
      const defaultConfigs = [...others, wanted]
      const addOns = client.of(ClusterManagementAddOn)
      // Only what the flags say: a rule that installs it stays, or a new version would take the add-on away.
      if (present) await addOns.patch(name, { merge: { metadata: meta, spec: { defaultConfigs } } }, { dryRun, signal })
      else
        await addOns.create(
          { metadata: { name, ...meta }, spec: { addOnMeta: { displayName: name }, defaultConfigs } },
          { dryRun, signal },
        )
      cli.out.line(`ClusterManagementAddOn ${name}: ${present ? 'uses' : 'created, with'} template ${template}`)
      if (!installOn)
        cli.progress.say(`enable it on clusters: ${cli.program} addon enable --names ${name} --clusters …`)
    })
  },
})

const registrationWith = (role: string): Registration => [
  {
    type: 'KubeClient',
    kubeClient: role ? { hubPermissions: [{ type: 'CurrentCluster', currentCluster: { clusterRoleName: role } }] } : {},
  },
]

const installAnnotation = async (said: string): Promise<Record<string, string> | undefined> => {
  if (!said) return undefined
  if (said !== '*') pairsOf('--install-on', said.split(','))
  const { installOnAnnotation } = await import('../../addons/hub/index.ts')
  return { [installOnAnnotation]: said }
}
