/**
 * The machine of a person who has made both EKS clusters: a shell with the real `aws` and `kubectl` and our programs, a profile of
 * AWS for each account, no kubeconfig yet, and a network that leads to AWS by a proxy.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Credentials } from '../src/aws/index.ts'
import type { IrsaScene } from './e2e-irsa-scene.ts'
import { behindProxy } from './eks/aws-tools.ts'
import { administratorOf } from './eks/index.ts'
import { programPath } from './program.ts'

/** Runs a script, with the variables that those before it have exported; what it printed. */
export type Shell = (script: string) => Promise<string>

export const startShell = async ({ eks, managed, managedCluster }: IrsaScene): Promise<Shell> => {
  const home = join(eks.hub.folder, 'home')
  const { PATH, ...env } = behindProxy(eks, home)
  const [ofHub, ofManaged] = await Promise.all([
    administratorOf(eks, eks.hubCluster, eks.hub),
    administratorOf(eks, managedCluster, managed),
  ])
  mkdirSync(join(home, '.aws'))
  const profiles = profile('hub', ofHub) + profile('managed', ofManaged)
  writeFileSync(join(home, '.aws', 'credentials'), profiles, { mode: 0o600 })
  const kept = join(home, 'variables')
  writeFileSync(kept, '')
  const options = {
    env: { ...env, PATH: `${dirname(programPath('lanyard'))}:${PATH}` },
    cwd: home,
    timeout: 240_000,
  }
  return async (script) => {
    const whole = `set -euo pipefail\n. ${kept}\n${script}\nexport -p > ${kept}`
    return (await promisify(execFile)('bash', ['--norc', '-c', whole], options)).stdout
  }
}

const profile = (name: string, { accessKeyId, secretAccessKey }: Credentials): string =>
  `[${name}]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`
