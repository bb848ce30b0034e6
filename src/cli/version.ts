import { readFileSync } from 'node:fs'

/** The version of this program. The image that `init` and `join` install carries the same. */
export const version = (): string => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
