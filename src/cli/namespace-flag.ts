import type { Flags } from '../main/flags.ts'

/** For commands that act in one namespace. */
export const namespaceFlag = {
  namespace: { help: 'The namespace', default: 'default', short: 'n', value: 'NAME' },
} as const satisfies Flags
