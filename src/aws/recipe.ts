/** An object in a namespace; what it is (a Secret, a service account) follows from where it is said. */
export interface ObjectReference {
  namespace: string
  name: string
}

/** How a role is assumed. Everything here goes to STS as it stands. */
export interface AssumeRole {
  arn: string
  /** 2 to 64 characters; CloudTrail shows it. */
  sessionName: string
  /** 900 to 43,200. AWS gives an hour where this is missing, and never more to a role assumed from a role. */
  durationSeconds?: number | undefined
  externalId?: string | undefined
  /** A policy as JSON that narrows the session. */
  inlinePolicy?: string | undefined
  /** ARNs of managed policies that narrow the session. */
  policyArns?: readonly string[] | undefined
  tags?: Readonly<Record<string, string>> | undefined
  /** Keys of tags that stay with the sessions assumed from this one. */
  transitiveTagKeys?: readonly string[] | undefined
  /** Where STS is called. */
  region: string
}

/** What a token for a service account is asked for. */
export interface TokenWanted {
  account: ObjectReference
  audiences: readonly string[]
  expirationSeconds?: number | undefined
}

/**
 * How credentials come to be, as data: who assumes which role from what. It holds references to secrets and never a secret, so it
 * can be shown, compared and kept.
 */
export type Recipe =
  /** The process's own credentials. */
  | { kind: 'controller' }
  /** An access key in a Secret. */
  | { kind: 'static'; secret: ObjectReference }
  /** STS AssumeRole with the credentials of another recipe. */
  | { kind: 'role'; source: Recipe; role: AssumeRole }
  /** STS AssumeRoleWithWebIdentity with the token of a service account. STS takes neither tags nor an external id there. */
  | ({ kind: 'serviceAccount'; role: WebIdentityRole } & TokenWanted)

/** What of `AssumeRole` a web identity may ask for: its tags are in the token. */
export type WebIdentityRole = Omit<AssumeRole, 'externalId' | 'tags' | 'transitiveTagKeys'>

/**
 * Names a recipe: two recipes have the same key exactly if they lead to the same credentials. JSON arrays, not joined strings:
 * `prod-a` in `team` and `prod` in `a-team` must not meet. Order of policies, tags and audiences changes nothing.
 */
export const recipeKey = (recipe: Recipe): string => JSON.stringify(parts(recipe))

type Part = string | number | null | Part[]

const parts = (recipe: Recipe): Part => {
  if (recipe.kind === 'controller') return ['controller']
  if (recipe.kind === 'static') return ['static', recipe.secret.namespace, recipe.secret.name]
  if (recipe.kind === 'role') return ['role', ...roleParts(recipe.role), parts(recipe.source)]
  const { account, audiences, expirationSeconds, role } = recipe
  const token: Part[] = [account.namespace, account.name, audiences.toSorted(), expirationSeconds ?? null]
  return ['serviceAccount', ...roleParts(role), ...token]
}

const roleParts = (role: AssumeRole): Part[] => [
  role.arn,
  role.region,
  role.sessionName,
  role.durationSeconds ?? null,
  role.externalId ?? null,
  role.inlinePolicy ?? null,
  (role.policyArns ?? []).toSorted(),
  Object.entries(role.tags ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  (role.transitiveTagKeys ?? []).toSorted(),
]

/** The recipe and those it stands on, the outermost first. */
export const linksOf = (recipe: Recipe): Recipe[] =>
  recipe.kind === 'role' ? [recipe, ...linksOf(recipe.source)] : [recipe]

/** One link in words, for messages. */
export const describeLink = (recipe: Recipe): string => {
  if (recipe.kind === 'controller') return "the controller's own credentials"
  if (recipe.kind === 'static') return `the access key in secret ${recipe.secret.namespace}/${recipe.secret.name}`
  if (recipe.kind === 'role') return `role ${recipe.role.arn}`
  return `role ${recipe.role.arn} for service account ${recipe.account.namespace}/${recipe.account.name}`
}

/** The whole chain in words, from the role that is used back to where it begins. */
export const describeChain = (recipe: Recipe): string => linksOf(recipe).map(describeLink).join(' ← ')
