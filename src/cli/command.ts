import type { Flags, ValuesOf } from '../main/flags.ts'
import type { Clock } from '../runtime/index.ts'
import type { Output } from './output.ts'
import type { Progress } from './progress.ts'

/** Where a command writes. */
export interface Sink {
  write(text: string): unknown
  isTTY?: boolean | undefined
  columns?: number | undefined
}

/** Where it reads what a person types or pipes in. */
export interface Source extends AsyncIterable<Uint8Array | string> {
  isTTY?: boolean | undefined
  setRawMode?: ((on: boolean) => unknown) | undefined
}

/** All that the program touches of the process it runs in. Tests bring their own. */
export interface Host {
  /** By which of its names it was called. */
  readonly program: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly stdin: Source
  readonly stdout: Sink
  readonly stderr: Sink
  readonly clock: Clock
  /** Fires when the person interrupts. Asked for by commands only: programs have signals of their own. */
  readonly signal: AbortSignal
}

/** Flags that every command understands. */
export const persistentFlags = {
  kubeconfig: { help: 'The kubeconfig to use, instead of $KUBECONFIG or ~/.kube/config', default: '', value: 'FILE' },
  context: {
    help: 'The context to use, instead of the current one',
    default: '',
    value: 'NAME',
    aliases: ['kubeconfig-context'], // as clusterctl spells it
    completes: 'contexts',
  },
  'dry-run': { help: 'Say what would change, and change nothing', default: false },
  timeout: { help: 'How long to wait for one thing: seconds, or 90s, 5m', default: 300, value: 'TIME', seconds: true },
  v: { help: 'Say more: causes and requests', default: 0, short: 'v', value: 'LEVEL', bare: 1 },
  help: { help: 'Explain the command', default: false, short: 'h' },
} as const satisfies Flags

/** For commands that print data. */
export const outputFlag = {
  output: {
    help: 'How to print: table, json or yaml',
    default: 'table',
    short: 'o',
    value: 'FORM',
    choices: ['table', 'json', 'yaml'],
  },
} as const satisfies Flags

/** What a command is given when it runs. */
export interface Cli<F extends Flags = Flags> extends Omit<Host, 'args'> {
  readonly flags: ValuesOf<F & typeof persistentFlags>
  /** The flags that were on the command line. */
  readonly given: ReadonlySet<string>
  /** The words that are not flags. */
  readonly args: readonly string[]
  /** The arguments as they were written, for programs with a parser of their own. */
  readonly raw: readonly string[]
  readonly out: Output
  readonly progress: Progress
}

/** A word that a command takes besides its flags. */
export interface Argument {
  name: string
  about: string
  optional?: boolean
  /** It takes all words that are left. */
  many?: boolean
  completes?: 'clusters' | 'clustersets' | 'works' | 'addons'
}

/** One command: one file in `commands/`, loaded when it is called. */
export interface Command {
  /** What it does, in a paragraph. */
  readonly text: string
  readonly flags: Flags
  readonly args?: readonly Argument[] | undefined
  /** Commands as a person would type them, without the program's name. */
  readonly examples?: readonly string[] | undefined
  /** The arguments are its own affair, --help among them. */
  readonly ownFlags?: boolean | undefined
  /** Nothing, or another exit code than 0. */
  run(cli: Cli): Promise<number | void>
}

/** Keeps the types of the flags for `run`. */
export const defineCommand = <const F extends Flags>(
  command: Omit<Command, 'flags' | 'run'> & { flags: F; run(cli: Cli<F>): Promise<number | void> },
): { command: Command } => ({ command })

/** A place in the tree of commands: a command, or a word that more follow. */
export interface Branch {
  readonly about: string
  readonly group?: string | undefined
  readonly hidden?: boolean | undefined
  readonly aliases?: readonly string[] | undefined
  readonly load?: (() => Promise<{ command: Command }>) | undefined
  readonly commands?: Tree | undefined
}
export type Tree = Readonly<Record<string, Branch>>
