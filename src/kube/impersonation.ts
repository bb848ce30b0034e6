import type { Impersonation } from './connection.ts'

/** The headers that ask the server to act as somebody else. Several groups are several headers of one name. */
export const impersonationHeaders = (who: Impersonation): Record<string, string | string[]> => ({
  'impersonate-user': utf8(who.user),
  ...(who.uid ? { 'impersonate-uid': utf8(who.uid) } : {}),
  ...(who.groups?.length ? { 'impersonate-group': who.groups.map(utf8) } : {}),
  ...Object.fromEntries(
    Object.entries(who.extra ?? {}).map(([key, values]) => [`impersonate-extra-${escaped(key)}`, values.map(utf8)]),
  ),
})

// Node writes one byte for each character of a header, Go reads UTF-8.
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

// encodeURIComponent leaves these two alone, but the name of a header must not hold them.
const escaped = (key: string): string => encodeURIComponent(key).replaceAll('(', '%28').replaceAll(')', '%29')
