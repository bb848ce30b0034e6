import type { AwsClient } from './client.ts'
import type { Credentials, CredentialSource } from './credentials.ts'
import { AwsInputError } from './errors.ts'
import type { AssumeRole, Recipe, WebIdentityRole } from './recipe.ts'
import { assumeRole, assumeRoleWithWebIdentity } from './sts.ts'

/** Keys that somebody holds. */
export const fromKeys =
  (keys: Credentials): CredentialSource =>
  async () =>
    usableKeys(keys)

/** Keys that are read each time they are asked for: from a Secret, say. */
export const fromStore =
  (read: (signal?: AbortSignal) => Promise<Credentials>): CredentialSource =>
  async (signal) =>
    usableKeys(await read(signal))

/** STS AssumeRole over another source. The source is asked again each time, so a chain outlives its links. */
export const fromRole =
  (aws: AwsClient, role: AssumeRole, source: CredentialSource): CredentialSource =>
  async (signal) => {
    const credentials = await source(signal)
    return assumeRole(aws, credentials, limited(role, credentials).role, signal)
  }

/** STS AssumeRoleWithWebIdentity. The token is asked for each time: it expires too. */
export const fromWebIdentity =
  (aws: AwsClient, role: WebIdentityRole, token: (signal?: AbortSignal) => Promise<string>): CredentialSource =>
  async (signal) =>
    assumeRoleWithWebIdentity(aws, await token(signal), role, signal)

/** Keys without their parts would fail at their first use, with an error that points elsewhere. */
const usableKeys = (keys: Credentials): Credentials => {
  const missing = (['accessKeyId', 'secretAccessKey'] as const).filter((name) => !keys[name]?.trim())
  if (missing.length === 0) return keys
  throw new AwsInputError(`the access key has no ${missing.join(' and no ')}`, 'put both parts of the key in place')
}

/** The longest session of a role that is assumed from a role. AWS refuses a longer one. */
export const longestChainedSeconds = 3600

/** The role as it can be asked for with these credentials, and what had to be said about it. */
export const limited = (role: AssumeRole, source: Credentials): { role: AssumeRole; limit?: string } => {
  const { durationSeconds: asked } = role
  // Temporary credentials are those of a role, or of a user with MFA: for the latter an hour is merely short.
  if (!source.sessionToken || !asked || asked <= longestChainedSeconds) return { role }
  return { role: { ...role, durationSeconds: longestChainedSeconds }, limit: limitText(asked) }
}

/** What to say about the durations of a chain, for all of it that can be known before it is used. */
export const durationLimit = (recipe: Recipe): string | undefined => {
  if (recipe.kind !== 'role' || recipe.source.kind === 'controller' || recipe.source.kind === 'static') return undefined
  const asked = recipe.role.durationSeconds ?? 0
  return asked > longestChainedSeconds ? limitText(asked) : undefined
}

const limitText = (asked: number): string =>
  `sessions last ${longestChainedSeconds} s and not the ${asked} s that are asked for: AWS gives no more to a role that is assumed from a role`
