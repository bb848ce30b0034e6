import { readFile } from 'node:fs/promises'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { readAll } from '../stdin.ts'
import type { FleetGrant } from './fleet.ts'

const next = 'save one with: access list --cluster NAME -o json > FILE'

/** The grants of a file that `access list -o json` has written; `-` is stdin. */
export const readSaved = async (cli: Pick<Cli, 'stdin'>, path: string): Promise<FleetGrant[]> => {
  const text = await (path === '-' ? readAll(cli) : readFile(path, 'utf8')).catch((cause: unknown) => {
    throw new CliError(`${path} cannot be read: ${(cause as NodeJS.ErrnoException).code}`, { next, cause })
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new CliError(`${path} is not JSON`, { next, cause })
  }
  if (!Array.isArray(value)) throw new CliError(`${path} is not a list of grants`, { next })
  const wrong = value.findIndex((one) => !isGrant(one))
  if (wrong >= 0) throw new CliError(`${path}: entry ${wrong + 1} is not a grant`, { next })
  return value as FleetGrant[]
}

const isGrant = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false
  const { cluster, subject, place, role, through, state, rules } = value as Record<string, unknown>
  const isNamed = (of: unknown): boolean =>
    typeof of === 'object' && of !== null && ['kind', 'name'].every((key) => typeof (of as never)[key] === 'string')
  const isPlace = place === 'cluster' || (typeof place === 'object' && place !== null)
  const areRules =
    rules === undefined ||
    (Array.isArray(rules) && rules.every((rule) => Array.isArray((rule as { verbs?: unknown } | null)?.verbs)))
  return (
    typeof cluster === 'string' &&
    typeof state === 'string' &&
    [subject, role, through].every(isNamed) &&
    isPlace &&
    areRules
  )
}
