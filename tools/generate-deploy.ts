/**
 * Writes what installs Lanyard without its command line: plain YAML and Helm charts, from the definitions that
 * `clusteradm init` and `join` use. With --check, names the files that are not up to date.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { KubeObject } from '../src/kube/index.ts'
import { hubInstall, managedInstall, ownVersion, type InstallOptions } from '../src/operator/index.ts'
import { chartFiles, yamlOf, type Chart } from './helm-chart.ts'

const root = join(import.meta.dirname, '../deploy')
const header = '# Generated from src/operator/install by `make generate`; change it there.\n'

interface Part {
  file: string
  install: (options: InstallOptions) => KubeObject[]
  chart: Pick<Chart, 'name' | 'about' | 'notes' | 'appliesWorks'>
}

const parts: Part[] = [
  {
    file: 'hub',
    install: hubInstall,
    chart: {
      name: 'cluster-manager',
      about: 'The operator of a hub',
      appliesWorks: false,
      notes: `The operator of a hub is installed. It makes this cluster a hub when there is a ClusterManager:

    kubectl apply -f - <<'YAML'
    apiVersion: operator.open-cluster-management.io/v1
    kind: ClusterManager
    metadata: { name: cluster-manager }
    YAML

Before helm uninstall, delete the ClusterManager and wait until it is gone: only the operator can take down what it made.
`,
    },
  },
  {
    file: 'managed-cluster',
    install: managedInstall,
    chart: {
      name: 'klusterlet',
      about: 'The operator of a managed cluster',
      appliesWorks: true,
      notes: `The operator of a managed cluster is installed. The cluster joins a hub when there is a Klusterlet, and in the namespace
open-cluster-management-agent the secret bootstrap-hub-kubeconfig. What is missing then, and what to do, the Klusterlet says:

    kubectl get klusterlet klusterlet -o yaml

Before helm uninstall, delete the Klusterlet and wait until it is gone: only the operator can take down what it made.
`,
    },
  },
]

/** Path in deploy/, and text, of every generated file. */
export const deployFiles = async (): Promise<Map<string, string>> => {
  const version = await ownVersion()
  const files = new Map<string, string>()
  for (const part of parts) {
    files.set(`${part.file}.yaml`, header + part.install({ version }).map(yamlOf).join('---\n'))
    for (const [path, text] of await chartFiles({ ...part.chart, install: part.install }))
      files.set(join('charts', part.chart.name, path), path.endsWith('.yaml') ? header + text : text)
  }
  return files
}

const found = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { recursive: true }).catch(() => [])
  return entries.filter((name) => /\.(yaml|json|txt)$/.test(name))
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
