/** What is to be done after a failure: `retry` backs off, `wait` looks again later, `stall` needs another input first. */
export type FailurePolicy = { kind: 'retry' } | { kind: 'wait'; afterMs: number } | { kind: 'stall' }

/** Why a call to AWS failed, whichever of its services said it in whichever words. */
export type FailureReason =
  | 'AccessDenied'
  | 'ExpiredToken'
  | 'InvalidCredentials'
  | 'ClockSkew'
  | 'Throttled'
  | 'MalformedPolicy'
  | 'PolicyTooLarge'
  | 'RegionDisabled'
  | 'WebIdentityRefused'
  | 'WebIdentityUnreachable'
  | 'InvalidRequest'
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'LimitExceeded'
  | 'Unavailable'
  | 'Unreachable'
  | 'TimedOut'
  /** What the credentials begin with (a Secret, a token, the controller's own) could not be had. */
  | 'SourceFailed'
  | 'Other'

export interface AwsErrorDetails {
  reason: FailureReason
  /** What happened, to what, and why. Never with a secret in it. */
  message: string
  /** What a person can change, in Kubernetes or in IAM. */
  next?: string | undefined
  policy?: FailurePolicy | undefined
  /** As AWS said it, such as `ExpiredTokenException`. */
  code?: string | undefined
  /** What was called, as IAM names it in policies, such as `iam:CreateRole`. */
  action?: string | undefined
  status?: number | undefined
  requestId?: string | undefined
  /** How long AWS wants to be left alone. */
  retryAfterMs?: number | undefined
  /** The link of the chain that failed, in words. */
  link?: string | undefined
  cause?: unknown
}

/** A call to AWS that failed: why, where in the chain, and what to do about it. */
export class AwsError extends Error {
  override name = 'AwsError'
  readonly reason: FailureReason
  readonly next: string | undefined
  readonly policy: FailurePolicy
  readonly code: string | undefined
  readonly action: string | undefined
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly retryAfterMs: number | undefined
  readonly link: string | undefined
  /** Without what to do next. */
  readonly what: string

  constructor(details: AwsErrorDetails) {
    super(details.next ? `${details.message}; ${details.next}` : details.message, { cause: details.cause })
    this.what = details.message
    this.reason = details.reason
    this.next = details.next
    this.policy = details.policy ?? { kind: 'retry' }
    this.code = details.code
    this.action = details.action
    this.status = details.status
    this.requestId = details.requestId
    this.retryAfterMs = details.retryAfterMs
    this.link = details.link
  }

  /** The same failure, told better by somebody who knows more. */
  with(more: Partial<AwsErrorDetails>): AwsError {
    return new AwsError({
      reason: this.reason,
      message: this.what,
      next: this.next,
      policy: this.policy,
      code: this.code,
      action: this.action,
      status: this.status,
      requestId: this.requestId,
      retryAfterMs: this.retryAfterMs,
      link: this.link,
      cause: this.cause,
      ...more,
    })
  }
}

/** Something a person wrote that AWS would refuse; nothing was sent. */
export class AwsInputError extends AwsError {
  override name = 'AwsInputError'

  constructor(message: string, next: string) {
    super({ reason: 'InvalidRequest', message, next, policy: { kind: 'stall' } })
  }
}

/** Whether an error is an answer of AWS, or of the way to it, for one of these reasons. */
export const failedFor = (error: unknown, ...reasons: FailureReason[]): error is AwsError =>
  error instanceof AwsError && reasons.includes(error.reason)

/** The words of AWS's services for the same things. Where AWS says one thing in two ways, both are here. */
const reasonsByCode: Record<string, FailureReason> = {
  AccessDenied: 'AccessDenied',
  AccessDeniedException: 'AccessDenied',
  UnauthorizedOperation: 'AccessDenied',
  UnauthorizedAccess: 'AccessDenied',
  NotAuthorized: 'AccessDenied',
  ExpiredToken: 'ExpiredToken',
  ExpiredTokenException: 'ExpiredToken',
  RequestExpired: 'ExpiredToken',
  InvalidClientTokenId: 'InvalidCredentials',
  UnrecognizedClientException: 'InvalidCredentials',
  InvalidToken: 'InvalidCredentials',
  AuthFailure: 'InvalidCredentials',
  SignatureDoesNotMatch: 'InvalidCredentials',
  InvalidSignatureException: 'InvalidCredentials',
  IncompleteSignature: 'InvalidCredentials',
  MissingAuthenticationToken: 'InvalidCredentials',
  RequestTimeTooSkewed: 'ClockSkew',
  Throttling: 'Throttled',
  ThrottlingException: 'Throttled',
  ThrottledException: 'Throttled',
  RequestLimitExceeded: 'Throttled',
  TooManyRequestsException: 'Throttled',
  RequestThrottled: 'Throttled',
  RequestThrottledException: 'Throttled',
  EC2ThrottledException: 'Throttled',
  BandwidthLimitExceeded: 'Throttled',
  PriorRequestNotComplete: 'Throttled',
  SlowDown: 'Throttled',
  MalformedPolicyDocument: 'MalformedPolicy',
  PackedPolicyTooLarge: 'PolicyTooLarge',
  RegionDisabledException: 'RegionDisabled',
  OptInRequired: 'RegionDisabled',
  InvalidIdentityToken: 'WebIdentityRefused',
  IDPRejectedClaim: 'WebIdentityRefused',
  IDPCommunicationError: 'WebIdentityUnreachable',
  ValidationError: 'InvalidRequest',
  ValidationException: 'InvalidRequest',
  InvalidParameterValue: 'InvalidRequest',
  InvalidParameterException: 'InvalidRequest',
  InvalidRequestException: 'InvalidRequest',
  InvalidInput: 'InvalidRequest',
  MissingParameter: 'InvalidRequest',
  NoSuchEntity: 'NotFound',
  ResourceNotFoundException: 'NotFound',
  NotFoundException: 'NotFound',
  InvalidSecurityGroup: 'NotFound', // of load balancers: the group does not exist
  EntityAlreadyExists: 'AlreadyExists',
  ResourceInUseException: 'AlreadyExists',
  'InvalidSubnet.Conflict': 'AlreadyExists', // another one has the block
  DeleteConflict: 'Conflict',
  ConcurrentModification: 'Conflict',
  EntityTemporarilyUnmodifiable: 'Conflict',
  DependencyViolation: 'Conflict',
  ResourceInUse: 'Conflict',
  IncorrectState: 'Conflict',
  LimitExceeded: 'LimitExceeded',
  ResourceLimitExceededException: 'LimitExceeded',
  ServiceFailure: 'Unavailable',
  ServiceUnavailable: 'Unavailable',
  ServiceUnavailableException: 'Unavailable',
  InternalFailure: 'Unavailable',
  InternalServerError: 'Unavailable',
  InternalError: 'Unavailable',
  ServerException: 'Unavailable',
}

/** Why, from the code and the status of an answer. */
export const reasonOf = (code: string, status: number, message = ''): FailureReason => {
  // STS says a wrong clock in the words of a wrong signature.
  if (/^Signature (expired|not yet current)/.test(message)) return 'ClockSkew'
  const known = reasonsByCode[code]
  if (known) return known
  // EC2 and ELB have a code for each kind: InvalidVpcID.NotFound, LoadBalancerNotFound.
  if (/NotFound(Exception)?$/.test(code)) return 'NotFound'
  if (/(AlreadyExists|Duplicate|AlreadyAssociated)(Exception)?$|^Duplicate/.test(code)) return 'AlreadyExists'
  // InvalidIPAddress.InUse, InvalidGroup.InUse.
  if (code.endsWith('.InUse')) return 'Conflict'
  // VpcLimitExceeded, AddressLimitExceeded, TooManyLoadBalancers.
  if (/LimitExceeded$|^TooMany/.test(code)) return 'LimitExceeded'
  // InsufficientAddressCapacity: a failure of the server to EC2, and yet it is there and answers everybody else.
  if (/^Insufficient\w*Capacity$/.test(code)) return 'Other'
  if (status === 429) return 'Throttled'
  if (status >= 500) return 'Unavailable'
  if (status === 403) return 'AccessDenied'
  return 'Other'
}

/** No use in asking again with the same input. Everything else may be put right in IAM, by AWS, or by time. */
export const policyFor = (reason: FailureReason): FailurePolicy =>
  reason === 'MalformedPolicy' || reason === 'PolicyTooLarge' ? { kind: 'stall' } : { kind: 'retry' }
