import { hostname } from 'node:os'
import { randomBytes } from 'node:crypto'
import { clientFor, connectionFrom, inCluster, loadKubeconfig, type Client, type Connection } from '../kube/index.ts'
import { clientMetrics, describeError, jsonLogger, Metrics, type Logger, type LogLevel } from '../runtime/index.ts'
import { helpText, parseFlags, UsageError, type Flags, type ValuesOf } from './flags.ts'

/** What every program of ours is given. */
export interface Program<F extends Flags> {
  flags: ValuesOf<F>
  env: NodeJS.ProcessEnv
  log: Logger
  metrics: Metrics
  /** Unique to this process; for leases and events. */
  instance: string
  /** Ends the program gracefully. */
  signal: AbortSignal
}

/** Flags that all programs have. */
export const commonFlags = {
  'log-level': { help: 'debug, info, warn or error', default: 'info' },
  'health-host': { help: 'Where /healthz, /readyz and /metrics are served', default: '127.0.0.1' },
  'health-port': { help: 'Their port; 0 takes a free one', default: 8000 },
} as const satisfies Flags

/**
 * Runs a program until SIGTERM or SIGINT, and answers with its exit code: 0 when it ended as asked, 2 when its flags were
 * off, 1 for everything else. A second signal ends it at once.
 */
export const runProgram = async <const F extends Flags>(
  about: { usage: string; text: string; flags: F },
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  main: (program: Program<F>) => Promise<void>,
): Promise<number> => {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(helpText(about.usage, about.text, about.flags))
    return 0
  }
  let log = jsonLogger((line) => process.stderr.write(line))
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(130)
      log.info('stopping', { signal })
      stop.abort(new Error(signal))
    })
  process.on('unhandledRejection', (error) => {
    log.error('a bug: nobody handled this error', { error })
    process.exit(1)
  })
  try {
    const flags = parseFlags(args, about.flags)
    const level = (flags as { 'log-level'?: string })['log-level'] ?? 'info'
    if (!['debug', 'info', 'warn', 'error'].includes(level))
      throw new UsageError(`--log-level takes debug, info, warn or error, not ${level}`)
    log = jsonLogger((line) => process.stderr.write(line), { level: level as LogLevel })
    const instance = `${hostname()}-${randomBytes(4).toString('hex')}`
    await main({ flags, env, log, metrics: new Metrics(), instance, signal: stop.signal })
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n`)
      return 2
    }
    if (stop.signal.aborted) return 0
    log.error('ended', { error: describeError(error) })
    return 1
  }
}

/** The cluster that a kubeconfig names, or the one that this process runs in. */
export const connectionTo = async (
  options: { kubeconfig: string; context?: string },
  env: NodeJS.ProcessEnv,
): Promise<Connection> => {
  if (!options.kubeconfig && env['KUBERNETES_SERVICE_HOST']) return inCluster({ env })
  const kubeconfig = await loadKubeconfig(options.kubeconfig ? { path: options.kubeconfig, env } : { env })
  return connectionFrom(kubeconfig, { env, ...(options.context ? { context: options.context } : {}) })
}

/** A client whose requests are counted. */
export const countedClient = (connection: Connection, userAgent: string, metrics: Metrics): Client =>
  clientFor(connection, { userAgent, onAnswer: clientMetrics(metrics) })

/** Which clusters an agent is for: the one it manages, and the one where it runs. */
export const whereFlags = {
  kubeconfig: {
    help: 'The managed cluster; without it the one that this process runs in',
    default: '',
    aliases: ['spoke-kubeconfig'],
  },
  context: { help: 'A context of the kubeconfig', default: '' },
  hosted: { help: 'Run in another cluster than the managed one, with the secrets of the agent', default: false },
  namespace: { help: "The agent's own namespace; that of the pod, unless told", default: '' },
} as const satisfies Flags

/** Clients for both clusters of an agent, which are one unless it is hosted, and its namespace. */
export const clustersOf = async (
  flags: ValuesOf<typeof whereFlags>,
  env: NodeJS.ProcessEnv,
  { userAgent, metrics }: { userAgent: string; metrics: Metrics },
): Promise<{ local: Client; home: Client; namespace: string }> => {
  const managed = await connectionTo(flags, env)
  const own = flags.hosted ? await connectionTo({ kubeconfig: '' }, env) : managed
  const local = countedClient(managed, userAgent, metrics)
  const home = flags.hosted ? countedClient(own, userAgent, metrics) : local
  return { local, home, namespace: flags.namespace || own.namespace || 'open-cluster-management-agent' }
}
