/**
 * Writes what installs Lanyard without its command line: plain YAML and Helm charts, from the definitions that
 * `clusteradm init` and `join` use. With --check, names the files that are not up to date.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import type { KubeObject } from '../src/kube/index.ts'
import { hubInstall, imageOf, managedInstall, ownVersion, type InstallOptions } from '../src/operator/index.ts'

const root = join(import.meta.dirname, '../deploy')
const header = '# Generated from src/operator/install by `make generate`; change it there.\n'

const yamlOf = (object: unknown): string => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })

interface Part {
  file: string
  chart: string
  about: string
  install: (options: InstallOptions) => KubeObject[]
}

const parts: Part[] = [
  { file: 'hub', chart: 'cluster-manager', about: 'The operator of a hub', install: hubInstall },
  { file: 'managed-cluster', chart: 'klusterlet', about: 'The operator of a managed cluster', install: managedInstall },
]

/** Stand in for values while the objects are made. */
const marks = { image: 'LANYARD-IMAGE', replicas: 987_654, resource: 'LANYARD-RESOURCE' }

/** The values of a chart, as `values.yaml` has them. */
export const chartValues = async () => ({
  image: imageOf({ version: await ownVersion() }),
  replicas: 1,
  resources: { requests: { cpu: '20m', memory: '96Mi' } },
})

const templateOf = (object: KubeObject): string =>
  yamlOf(object)
    .replaceAll(marks.image, '{{ .Values.image }}')
    .replaceAll(String(marks.replicas), '{{ .Values.replicas }}')
    .replace(/resources:\n\s+requests:\n\s+LANYARD-RESOURCE: "1"\n/, 'resources: {{ toJson .Values.resources }}\n')

const fileNameOf = ({ kind, metadata }: KubeObject): string => {
  const where = metadata.namespace ? `${metadata.namespace}-` : ''
  return `${kind}-${where}${metadata.name}.yaml`.toLowerCase().replaceAll(':', '-')
}

const isCrd = ({ kind }: KubeObject): boolean => kind === 'CustomResourceDefinition'
/** `helm install --create-namespace` makes it, and refuses one that is there already. */
const isHelms = ({ kind, metadata }: KubeObject): boolean =>
  kind === 'Namespace' && metadata.name === 'open-cluster-management'

const chartFiles = async ({ chart, about, install }: Part): Promise<[string, string][]> => {
  const version = await ownVersion()
  const sizing = { type: 'ResourceRequirement', resourceRequirements: { requests: { [marks.resource]: '1' } } }
  const objects = install({ image: marks.image, replicas: marks.replicas, sizing })
  const folder = join('charts', chart)
  return [
    [
      join(folder, 'Chart.yaml'),
      yamlOf({ apiVersion: 'v2', name: chart, description: about, version, appVersion: version }),
    ],
    [join(folder, 'values.yaml'), yamlOf(await chartValues())],
    ...objects
      .filter((object) => !isHelms(object))
      .map((object): [string, string] =>
        isCrd(object)
          ? [join(folder, 'crds', fileNameOf(object)), yamlOf(object)]
          : [join(folder, 'templates', fileNameOf(object)), templateOf(object)],
      ),
  ]
}

/** Path in deploy/, and text, of every generated file. */
export const deployFiles = async (): Promise<Map<string, string>> => {
  const version = await ownVersion()
  const files = new Map<string, string>()
  for (const part of parts) {
    files.set(`${part.file}.yaml`, header + part.install({ version }).map(yamlOf).join('---\n'))
    for (const [path, text] of await chartFiles(part)) files.set(path, header + text)
  }
  return files
}

const found = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { recursive: true }).catch(() => [])
  return entries.filter((name) => name.endsWith('.yaml'))
}

/** Files under `folder` that differ, are missing, or are not generated any more. */
export const staleDeployFiles = async (folder: string): Promise<string[]> => {
  const wanted = await deployFiles()
  const names = new Set([...wanted.keys(), ...(await found(folder))])
  const stale = await Promise.all(
    [...names].map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8').catch(() => undefined)
      return text === undefined || text !== wanted.get(name) ? name : []
    }),
  )
  return stale.flat().toSorted()
}

/** Brings `folder` up to date. */
export const writeDeployFiles = async (folder: string): Promise<string[]> => {
  const wanted = await deployFiles()
  const stale = await staleDeployFiles(folder)
  for (const name of stale) {
    const text = wanted.get(name)
    if (text === undefined) await rm(join(folder, name))
    else {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    }
  }
  return stale
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = await staleDeployFiles(root)
    for (const name of stale) console.error(`deploy/${name} is not up to date; run: make generate`)
    process.exitCode = stale.length > 0 ? 1 : 0
  } else for (const name of await writeDeployFiles(root)) console.log(`deploy/${name}`)
}
