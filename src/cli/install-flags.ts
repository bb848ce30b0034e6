import { readFile } from 'node:fs/promises'
import { UsageError, type Flags, type ValuesOf } from '../main/flags.ts'
import type { InstallOptions } from '../operator/index.ts'
import { CliError } from './errors.ts'
import { version } from './version.ts'

/** Which image is installed, and how much it may use. */
export const installFlags = {
  image: { help: 'The whole name of the image, instead of registry and version', default: '', value: 'IMAGE' },
  'image-registry': { help: 'Where the image is', default: '', value: 'REGISTRY' },
  'bundle-version': { help: 'Its version; that of this program unless told', default: '', value: 'VERSION' },
  'image-pull-credential-file': { help: 'A .dockerconfigjson for the registry', default: '', value: 'FILE' },
  'resource-qos-class': {
    help: 'How big the pods are: Default, BestEffort or ResourceRequirement',
    default: 'Default',
    value: 'CLASS',
    choices: ['Default', 'BestEffort', 'ResourceRequirement'],
  },
  'resource-requests': { help: 'With ResourceRequirement: cpu=100m,memory=128Mi', default: [], value: 'LIST' },
  'resource-limits': { help: 'With ResourceRequirement: cpu=1,memory=512Mi', default: [], value: 'LIST' },
} as const satisfies Flags

type InstallValues = ValuesOf<typeof installFlags>

/** What the operator's manifests are made with. */
export const installOptions = async (flags: InstallValues): Promise<InstallOptions> => {
  const file = flags['image-pull-credential-file']
  const sizing = sizingOf(flags)
  return {
    ...(flags.image && { image: flags.image }),
    ...(flags['image-registry'] && { registry: flags['image-registry'].replace(/\/+$/, '') }),
    version: flags['bundle-version'] && flags['bundle-version'] !== 'default' ? flags['bundle-version'] : version(),
    ...(file && { pullCredentials: await readCredentials(file) }),
    ...(sizing && { sizing }),
  }
}

const readCredentials = async (file: string): Promise<string> => {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(`--image-pull-credential-file ${file} cannot be read: ${cause.code}`, { cause })
  })
  try {
    JSON.parse(text)
    return text
  } catch {
    // Without the parser's words: they quote the file.
    throw new CliError(`--image-pull-credential-file ${file} is not JSON`, { next: 'it is a .dockerconfigjson' })
  }
}

/** The same for the objects that people write; undefined where it is the default. */
export const sizingOf = (
  flags: Pick<InstallValues, 'resource-qos-class' | 'resource-requests' | 'resource-limits'>,
) => {
  const type = flags['resource-qos-class'] as 'Default' | 'BestEffort' | 'ResourceRequirement'
  const requests = quantities('--resource-requests', flags['resource-requests'])
  const limits = quantities('--resource-limits', flags['resource-limits'])
  if (type !== 'ResourceRequirement') {
    if (requests || limits)
      throw new UsageError('--resource-requests and --resource-limits need --resource-qos-class ResourceRequirement')
    return type === 'Default' ? undefined : { type }
  }
  return { type, resourceRequirements: { ...(requests && { requests }), ...(limits && { limits }) } }
}

const quantities = (flag: string, said: readonly string[]): Record<string, string> | undefined => {
  if (said.length === 0) return undefined
  return Object.fromEntries(said.map((one) => keyAndValue(flag, one)))
}

/** `key=value`, or an error that names the flag. */
export const keyAndValue = (flag: string, said: string): [string, string] => {
  const at = said.indexOf('=')
  if (at < 1) throw new UsageError(`${flag}: write key=value, not ${JSON.stringify(said)}`)
  return [said.slice(0, at), said.slice(at + 1)]
}

export interface FeatureGate {
  feature: string
  mode: 'Enable' | 'Disable'
}

/** `Gate=true,Other=false`, by the part of the spec that each gate belongs to. */
export const gatesBy = <P extends string>(
  said: readonly string[],
  known: Readonly<Record<string, P>>,
  nearest: (word: string, known: readonly string[]) => string | undefined,
): Partial<Record<P, FeatureGate[]>> => {
  const parts: Partial<Record<P, FeatureGate[]>> = {}
  for (const one of said) {
    const [name, value] = keyAndValue('--feature-gates', one)
    const feature = Object.keys(known).find((gate) => gate.toLowerCase() === name.toLowerCase())
    if (!feature) {
      const near = nearest(name, Object.keys(known))
      const next = near === undefined ? `there are ${Object.keys(known).join(', ')}` : `did you mean ${near}?`
      throw new UsageError(`--feature-gates: there is no gate ${name}; ${next}`)
    }
    if (value !== 'true' && value !== 'false')
      throw new UsageError(`--feature-gates: write ${feature}=true or ${feature}=false, not ${one}`)
    const part = known[feature]!
    parts[part] = [...(parts[part] ?? []), { feature, mode: value === 'true' ? 'Enable' : 'Disable' }]
  }
  return parts
}

/** Gates that were said over those that are there. */
export const mergedGates = (
  present: readonly { feature: string; mode?: string | undefined }[] | undefined,
  said: readonly FeatureGate[] | undefined,
): FeatureGate[] | undefined => {
  if (!present && !said) return undefined
  const by = new Map((present ?? []).map((one) => [one.feature, { feature: one.feature, mode: one.mode ?? 'Disable' }]))
  for (const one of said ?? []) by.set(one.feature, one)
  return [...by.values()] as FeatureGate[]
}
