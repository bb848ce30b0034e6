import { readFile } from 'node:fs/promises'
import { UsageError } from '../main/flags.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'
import { ask, isInteractive, readAll } from './stdin.ts'

type Asking = Cli & { flags: { 'hub-token': string; 'hub-token-file': string } }

/** The token, from wherever the person put it: flag, file, environment, or typed in. */
export const hubToken = async (cli: Asking): Promise<string> => {
  const token = (await given(cli)).trim()
  if (!token)
    throw new UsageError(
      `--hub-token is missing: get one on the hub with ${cli.program} get token; or use --hub-token-file or $LANYARD_HUB_TOKEN`,
    )
  if (/[^\u0021-\u007e]/.test(token))
    throw new UsageError('the token holds characters that no token has: was it cut, or broken over lines?')
  const expired = expiryOf(token)
  if (expired !== undefined && expired <= cli.clock.now())
    throw new CliError(`the token expired at ${new Date(expired).toISOString()}`, {
      next: `get a new one on the hub: ${cli.program} get token`,
    })
  return token
}

const given = async (cli: Asking): Promise<string> => {
  const { 'hub-token': flag, 'hub-token-file': file } = cli.flags
  if (flag && file) throw new UsageError('--hub-token and --hub-token-file say the same thing twice: give one of them')
  if (flag) return flag
  if (file === '-') return readAll(cli)
  if (file)
    return readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
      throw new CliError(`--hub-token-file ${file} cannot be read: ${cause.code}`, { cause })
    })
  const fromEnvironment = cli.env['LANYARD_HUB_TOKEN']
  if (fromEnvironment) return fromEnvironment
  return isInteractive(cli) ? ask(cli, 'Token for the hub: ', { secret: true }) : ''
}

/** When a JWT ends, as anybody can read it; undefined for tokens of other kinds. */
export const expiryOf = (token: string): number | undefined => {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1000 : undefined
  } catch {
    return undefined
  }
}
