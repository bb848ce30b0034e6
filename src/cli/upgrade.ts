import type { KubeObject } from '../kube/index.ts'
import { UsageError } from '../main/flags.ts'
import { applyAll } from './apply.ts'
import { carriedOver, imageIn } from './carried-over.ts'
import type { Cluster } from './cluster.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'
import { installFlags, installOptions } from './install-flags.ts'
import { imageOf, type ManagedInstallOptions } from '../operator/index.ts'

const {
  image,
  'image-registry': registry,
  'bundle-version': bundleVersion,
  'image-pull-credential-file': credentials,
} = installFlags

/** What an upgrade may change. Everything else stays as the object says. */
export const upgradeFlags = {
  image,
  'image-registry': registry,
  'bundle-version': bundleVersion,
  'image-pull-credential-file': credentials,
  wait: { help: 'Until the new version runs', default: false },
} as const

/** Installs an operator anew in another version, and gives its image. It then brings what it keeps to that version itself. */
export const upgrade = async (
  cli: Cli<typeof upgradeFlags>,
  { client }: Cluster,
  about: { operator: string; missing: string; install: (options: ManagedInstallOptions) => KubeObject[] },
): Promise<string> => {
  const before = await imageIn(client, about.operator, cli.signal)
  if (!before) throw new CliError(`the operator ${about.operator} is not installed here`, { next: about.missing })
  const said = await installOptions({
    ...cli.flags,
    'resource-qos-class': 'Default',
    'resource-requests': [],
    'resource-limits': [],
    // The registry stays unless another is named.
    'image-registry': cli.flags['image-registry'] || before.slice(0, Math.max(0, before.lastIndexOf('/'))),
  })
  if (cli.flags.image && cli.given.has('bundle-version'))
    throw new UsageError('--image names the version already: leave --bundle-version away')
  const options = await carriedOver(client, about.operator, {
    said,
    // Without a word it is to the version of this program.
    given: new Set(['image']),
    signal: cli.signal,
  })
  const dryRun = cli.flags['dry-run']
  const changes = await applyAll(client, about.install(options), { dryRun, signal: cli.signal })
  for (const [of, change] of changes) cli.progress.say(`${dryRun ? 'would be ' : ''}${change}: ${of}`)
  const after = imageOf(options)
  cli.out.line(
    before === after ? `${about.operator} runs ${after} already.` : `${about.operator}: from ${before} to ${after}.`,
  )
  return after
}
