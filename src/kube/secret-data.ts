import type { Secret } from './builtin.ts'

/** The data of a Secret, decoded. */
export type SecretData = Readonly<Record<string, string>>

/** Keys to write into a secret; undefined removes one. */
export type SecretChange = Readonly<Record<string, string | undefined>>

/** The data of a Secret as text; undefined when there is no Secret. */
export const decoded = (secret: Secret | undefined): SecretData | undefined =>
  secret &&
  Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  )

/** The part of a change that changes something. */
export const effective = (change: SecretChange, present: SecretData): SecretChange =>
  Object.fromEntries(Object.entries(change).filter(([key, value]) => present[key] !== value))

/** A merge patch's `data`: null takes a key out. */
export const encoded = (change: SecretChange): Record<string, string | null> =>
  Object.fromEntries(Object.entries(change).map(([key, value]) => [key, value === undefined ? null : base64(value)]))

const base64 = (text: string): string => Buffer.from(text).toString('base64')
