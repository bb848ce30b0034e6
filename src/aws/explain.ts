import { AwsError, type FailureReason } from './errors.ts'
import { describeLink, type Recipe } from './recipe.ts'

/** A failed link as a person needs it: which one, why, and what to change in IAM or in Kubernetes. */
export const explained = (error: AwsError, link: Recipe, sourceArn?: string): AwsError => {
  if (error.link !== undefined) return error // told where it happened
  return error.with({
    link: describeLink(link),
    message: `${describeLink(link)}: ${error.what}`,
    next: adviceFor(error, link, sourceArn) ?? error.next,
  })
}

/** Something that is not AWS failed: a Secret that is missing, a token that is not given. */
export const sourceFailed = (link: Recipe, cause: unknown): AwsError => {
  if (cause instanceof AwsError) return explained(cause, link)
  const { policy, next } = (cause ?? {}) as Partial<Pick<AwsError, 'policy' | 'next'>>
  const why = cause instanceof Error ? cause.message : 'it is not available'
  const message = `${describeLink(link)}: ${why}`
  return new AwsError({
    reason: 'SourceFailed',
    link: describeLink(link),
    message,
    // Our own errors carry their advice in their message too.
    next: next && why.includes(next) ? undefined : next,
    policy,
    cause,
  })
}

const adviceFor = (error: AwsError, link: Recipe, sourceArn: string | undefined): string | undefined => {
  const forKeys = adviceForKeys[error.reason]
  if (link.kind === 'role') {
    const who = sourceArn ?? describeLink(link.source)
    return (adviceForRole[error.reason] ?? adviceForSession[error.reason])?.(link, error, who) ?? forKeys
  }
  if (link.kind === 'serviceAccount')
    return (
      (adviceForToken[error.reason] ?? adviceForSession[error.reason])?.(link, error, describeLink(link)) ?? forKeys
    )
  return forKeys
}

type Advice<L> = Partial<Record<FailureReason, (link: L, error: AwsError, who: string) => string | undefined>>
type RoleLink = Recipe & { kind: 'role' }
type TokenLink = Recipe & { kind: 'serviceAccount' }

const adviceForRole: Advice<RoleLink> = {
  // AWS does not say which of these it was, nor whether the role exists.
  AccessDenied: ({ role }, _error, who) =>
    [
      `see that ${role.arn} exists and its trust policy lets ${who} do sts:AssumeRole`,
      `that ${who} may do sts:AssumeRole on it`,
      role.externalId === undefined
        ? 'that it asks for no external id'
        : 'that its trust policy asks for the same external id',
      ...(Object.keys(role.tags ?? {}).length ? ['that its trust policy allows sts:TagSession too'] : []),
    ].join(', '),
  ExpiredToken: (_link, _error, who) =>
    `the credentials of ${who} have expired or were revoked: see that they are renewed`,
  InvalidCredentials: (_link, _error, who) =>
    `AWS does not know the credentials of ${who}, or not yet: a new access key takes up to a minute; see that it exists and is active`,
}

const adviceForToken: Advice<TokenLink> = {
  AccessDenied: ({ role, account, audiences }) =>
    `see that ${role.arn} exists and its trust policy lets system:serviceaccount:${account.namespace}:${account.name} with audience ${audiences.join(' or ')} do sts:AssumeRoleWithWebIdentity`,
  ExpiredToken: () => 'the token of the service account has expired: see that the clock of the API server is right',
  WebIdentityRefused: ({ role }) =>
    `see that IAM in the account of ${role.arn} has an OIDC provider for the issuer of this cluster, that the issuer's keys can be read from the internet, and that the audience is one of the provider's`,
  WebIdentityUnreachable: () =>
    "AWS cannot read the keys of this cluster's issuer: see that its URL can be reached from the internet",
}

const adviceForSession: Advice<RoleLink | TokenLink> = {
  InvalidRequest: ({ role }, error) => {
    if (role.durationSeconds && /DurationSeconds/i.test(error.what))
      return `ask for less than ${role.durationSeconds} s, or raise the maximum session duration of ${role.arn}`
    return role.policyArns?.length ? `see that the policies exist in the account of ${role.arn}` : undefined
  },
  MalformedPolicy: () => 'correct the inline policy',
  PolicyTooLarge: () => 'shorten the inline policy, or use fewer policies and tags',
  RegionDisabled: ({ role }) => `switch on ${role.region} in the settings of the account, or choose another region`,
}

const adviceForKeys: Partial<Record<FailureReason, string>> = {
  ExpiredToken: 'put new keys in place of these',
  InvalidCredentials:
    'AWS does not know this access key, or not yet: a new one takes up to a minute; see that it exists, is active, and belongs to its secret key',
  ClockSkew: 'set the clock of the machine: AWS refuses what is signed more than five minutes off',
  Throttled: 'nothing: it is tried again, more and more slowly',
  Unavailable: 'nothing: it is tried again',
}
