import type { Credential, CredentialSource } from './connection.ts'
import { execApiVersions, execInfo, readExecCredential } from './exec-credential.ts'
import type { ExecCluster, PrintedCredential } from './exec-credential.ts'
import { runPlugin } from './exec-run.ts'
import { KubeconfigError, listed, quoted } from './kubeconfig-error.ts'
import type { ExecConfig } from './kubeconfig-schema.ts'
import type { Environment } from './kubeconfig.ts'
import { sharedFlight } from './shared-flight.ts'

export interface ExecPlugin {
  /** Without a path separator the command is looked up in `env.PATH`; a relative path must have been resolved. */
  exec: ExecConfig
  /** Asked before each run of a plug-in with `provideClusterInfo`. */
  cluster: () => Promise<ExecCluster>
  /** For messages. */
  source: string
  /** What the plug-in inherits; few work without PATH and HOME. */
  env: Environment
  /** Whether a person can be asked on our stdin. */
  terminal?: boolean | undefined
  now?: (() => number) | undefined
  /** 60 s, or 5 minutes where a person may be typing. */
  timeoutMs?: number | undefined
}

/** Runs a credential plug-in (client.authentication.k8s.io): one run at a time, its answer kept until shortly before it expires. */
export const credentialFromExec = (plugin: ExecPlugin): CredentialSource => {
  const problem = execProblem(plugin.exec)
  if (problem) throw failed(plugin, problem, 'correct the exec section of that user')
  const now = plugin.now ?? Date.now

  let current: { credential: Credential; refreshAt: number; expiresAt: number } | undefined
  let failure: { error: unknown; count: number; until: number } | undefined
  let refusal = { count: 0, at: Number.NEGATIVE_INFINITY }

  const run = sharedFlight(async (signal) => {
    try {
      const { credential, expiresAt = Number.POSITIVE_INFINITY } = await printedBy(plugin, signal)
      const left = expiresAt - now()
      if (left <= 0) {
        const when = new Date(expiresAt).toISOString()
        throw failed(plugin, `it gave a credential that had expired at ${when}`, 'log in again, and check the clock')
      }
      const unchanged = current && same(current.credential, credential)
      const kept = unchanged && current ? current.credential : credential
      current = { credential: kept, refreshAt: expiresAt - Math.min(60_000, left / 10), expiresAt }
      failure = undefined
    } catch (error) {
      if (signal.aborted) throw error
      const count = (failure?.count ?? 0) + 1
      failure = { error, count, until: now() + pauseMs(count) }
    }
  })

  return async ({ rejected, signal } = {}) => {
    signal?.throwIfAborted()
    const isRejected = (): boolean => rejected !== undefined && rejected === current?.credential
    if (current && !isRejected() && now() < current.refreshAt) return current.credential
    if (current && isRejected() && !run.underWay()) {
      // A server that refuses whatever it is shown must not make us run the plug-in for every request.
      const sinceLast = now() - refusal.at
      if (sinceLast < pauseMs(refusal.count)) return current.credential
      refusal = { count: sinceLast < forgivenAfterMs ? refusal.count + 1 : 1, at: now() }
    }
    if (!failure || now() >= failure.until) await run(signal)
    if (current && (!failure || (!isRejected() && now() < current.expiresAt))) return current.credential
    throw failure?.error
  }
}

// 0, then 1, 2, 4 … 60 s
const pauseMs = (count: number): number => (count === 0 ? 0 : Math.min(60_000, 1000 * 2 ** (count - 1)))
const forgivenAfterMs = 300_000

/** Why an exec section cannot be used; undefined when it can. */
const execProblem = (exec: ExecConfig): string | undefined => {
  const { command, apiVersion, interactiveMode } = exec
  if (!command) return 'exec.command is missing'
  if (!apiVersion) return 'exec.apiVersion is missing'
  if (!execApiVersions.includes(apiVersion)) {
    return `exec.apiVersion ${quoted(apiVersion)} is not one of ${listed(execApiVersions)}`
  }
  if (exec.env?.some(({ name }) => !name)) return 'an entry of exec.env has no name'
  // KEP-541: what was optional in v1beta1, with IfAvailable as its default, must be given in v1
  if (!interactiveMode && apiVersion.endsWith('/v1')) return 'exec.interactiveMode is missing, which v1 asks for'
  const modes = ['Never', 'IfAvailable', 'Always']
  return !interactiveMode || modes.includes(interactiveMode)
    ? undefined
    : `exec.interactiveMode is not one of ${listed(modes)}`
}

const printedBy = async (plugin: ExecPlugin, signal: AbortSignal): Promise<PrintedCredential> => {
  const { exec, terminal = false } = plugin
  const { command = '', apiVersion = '' } = exec
  if (exec.interactiveMode === 'Always' && !terminal) {
    const next = 'log in where there is one, or use another credential here'
    throw failed(plugin, 'it always asks a person (interactiveMode: Always), and there is no terminal', next)
  }
  const interactive = terminal && exec.interactiveMode !== 'Never'
  const cluster = exec.provideClusterInfo ? await plugin.cluster() : undefined
  const outcome = await runPlugin({
    command,
    args: exec.args ?? [],
    env: {
      ...plugin.env,
      ...Object.fromEntries((exec.env ?? []).map(({ name = '', value = '' }) => [name, value])),
      KUBERNETES_EXEC_INFO: execInfo(apiVersion, interactive, cluster),
    },
    interactive,
    timeoutMs: plugin.timeoutMs ?? (interactive ? 300_000 : 60_000),
    signal,
  })
  if ('problem' in outcome) {
    const hint = outcome.missing && exec.installHint ? `: ${quoted(exec.installHint.slice(0, 1000))}` : ''
    const next = outcome.missing ? `install it${hint}` : 'run it by hand to see what it needs'
    throw failed(plugin, outcome.problem, next)
  }
  const printed = readExecCredential(outcome.stdout, apiVersion)
  if ('problem' in printed) throw failed(plugin, printed.problem, 'correct or update the plug-in')
  return printed
}

// Arguments and environment may hold secrets: only the command is named.
const failed = ({ exec, source }: ExecPlugin, problem: string, next: string): KubeconfigError =>
  new KubeconfigError({ source, problem: `exec plug-in ${quoted(exec.command ?? '')}: ${problem}`, next })

const same = (a: Credential, b: Credential): boolean => a.token === b.token && a.cert === b.cert && a.key === b.key
