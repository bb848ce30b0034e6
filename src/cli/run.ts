/** The program from the command line to the exit code. Nothing here touches the process: see lanyard.ts for that. */
import { parseArguments, type Flags } from '../main/flags.ts'
import { persistentFlags, type Branch, type Cli, type Command, type Host } from './command.ts'
import { explain, exitCode } from './errors.ts'
import { findCommand } from './find.ts'
import { tree } from './tree.ts'

/** The top of the tree. */
export const root: Branch = { about: 'Identity and access for fleets of Kubernetes clusters', commands: tree }

/** Runs what the arguments say, and answers with the exit code. Errors are told here, once. */
export const run = async (host: Host, top: Branch = root): Promise<number> => {
  let level = 0
  let started = false
  try {
    const { branch, path, rest } = findCommand(top, host.args)
    if (!branch.load) {
      const asked = path.length > 0 || host.args.length === 0 || parseArguments(rest, persistentFlags).values.help
      const { groupHelp } = await import('./help.ts')
      ;(asked ? host.stdout : host.stderr).write(groupHelp(host.program, path, branch))
      return asked ? exitCode.done : exitCode.usage
    }
    const { command } = await branch.load()
    if (!command.ownFlags && asksForHelp(rest)) {
      const { commandHelp } = await import('./help.ts')
      host.stdout.write(commandHelp(host.program, path, command))
      return exitCode.done
    }
    const cli = await cliFor(host, path, command, rest)
    level = cli.flags.v
    started = !command.ownFlags
    return (await command.run(cli)) ?? exitCode.done
  } catch (error) {
    const interrupted = started && host.signal.aborted
    const { text, code } = explain(error, { level, interrupted })
    host.stderr.write(text)
    return code
  }
}

const asksForHelp = (args: readonly string[]): boolean => {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

const cliFor = async (host: Host, path: readonly string[], command: Command, rest: readonly string[]): Promise<Cli> => {
  const [{ outputTo }, { progressOn }] = await Promise.all([import('./output.ts'), import('./progress.ts')])
  const flags: Flags = command.ownFlags ? {} : { ...persistentFlags, ...command.flags }
  const { values, given, words } = command.ownFlags
    ? { values: { v: 0 }, given: new Set<string>(), words: [] }
    : parseArguments(rest, flags)
  if (!command.ownFlags) {
    const { checkWords } = await import('./words.ts')
    checkWords([host.program, ...path].join(' '), command.args ?? [], words)
  }
  const { program, env, stdin, stdout, stderr, clock } = host
  return {
    program,
    env,
    stdin,
    stdout,
    stderr,
    clock,
    get signal() {
      return host.signal
    },
    flags: values as Cli['flags'],
    given,
    args: words,
    raw: rest,
    out: outputTo(stdout, env),
    progress: progressOn({ sink: stderr, env, clock, signal: () => host.signal }),
  }
}
