import type { Sizing } from '../pod.ts'

/** How an operator is installed. */
export interface InstallOptions {
  /** The whole name of the image; `registry` and `version` are not looked at then. */
  image?: string | undefined
  /** Where the image is, without a slash at the end. */
  registry?: string | undefined
  version?: string | undefined
  /** Replicas of the operator; one works, the others wait. */
  replicas?: number | undefined
  sizing?: Sizing | undefined
  /** Content of a `.dockerconfigjson`; the operators copy it to where their pods run. */
  pullCredentials?: string | undefined
}

export interface ManagedInstallOptions extends InstallOptions {
  /** The ClusterRole that works are applied with; the operator may bind no other. */
  workRole?: string | undefined
}

const fromFile = new URL('../../../package.json', import.meta.url)

/** The version of this program: its image carries the same. */
export const ownVersion = async (): Promise<string> => {
  const { readFile } = await import('node:fs/promises')
  return (JSON.parse(await readFile(fromFile, 'utf8')) as { version: string }).version
}

/** The image that the options ask for. */
export const imageOf = ({ image, registry, version = 'latest' }: InstallOptions): string =>
  image ?? `${registry ? `${registry}/` : ''}lanyard:${version}`
