/** Writes the CRD of every kind to config/crds as YAML; with --check, names the files that are not up to date. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { borrowedKinds, crds, type ConversionWebhook } from '../src/api/index.ts'
import type { CustomResourceDefinition } from '../src/kube/index.ts'

const root = join(import.meta.dirname, '../config/crds')

const header = '# Generated from src/api by `make generate`; change it there.\n'

/** Where a hub in the cluster serves conversion. The CA bundle is filled in by the hub, which makes its own certificate. */
const conversion: ConversionWebhook = {
  service: { namespace: 'open-cluster-management-hub', name: 'lanyard-webhook', path: '/convert', port: 443 },
}

const yamlOf = (crd: CustomResourceDefinition): string =>
  header + stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false })

/**
 * Path in the folder, and text, of every CRD file. Kinds that others own are in a folder of their own, so that
 * `kubectl apply -f config/crds` does not replace theirs.
 */
export const crdFiles = (): Map<string, string> => {
  const files = new Map<string, string>()
  const fileOf = (crd: CustomResourceDefinition) => `${crd.metadata.name}.yaml`
  for (const crd of crds({ conversion })) files.set(fileOf(crd), yamlOf(crd))
  for (const kind of borrowedKinds) {
    const crd = kind.crd({ conversion })
    files.set(join('borrowed', fileOf(crd)), yamlOf(crd))
  }
  return files
}

const found = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { recursive: true }).catch(() => [])
  return entries.filter((name) => name.endsWith('.yaml'))
}

/** Files under `folder` that differ, are missing, or belong to no kind. */
export const staleFiles = async (folder: string): Promise<string[]> => {
  const wanted = crdFiles()
  const names = new Set([...wanted.keys(), ...(await found(folder))])
  const stale = await Promise.all(
    [...names].map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8').catch(() => undefined)
      return text === undefined || text !== wanted.get(name) ? name : []
    }),
  )
  return stale.flat().sort()
}

/** Brings `folder` up to date, and removes files that belong to no kind. */
export const writeFiles = async (folder: string): Promise<string[]> => {
  const wanted = crdFiles()
  const stale = await staleFiles(folder)
  await Promise.all(
    stale.map(async (name) => {
      const path = join(folder, name)
      const text = wanted.get(name)
      if (text === undefined) return rm(path)
      await mkdir(dirname(path), { recursive: true })
      return writeFile(path, text)
    }),
  )
  return stale
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = await staleFiles(root)
    for (const name of stale) console.error(`config/crds/${name} is not up to date; run: make generate`)
    process.exitCode = stale.length > 0 ? 1 : 0
  } else {
    for (const name of await writeFiles(root)) console.log(`config/crds/${name}`)
  }
}
