import { AwsError, creatorAccessPolicy, eksClusterArn, type EksCluster, type Statement } from '../../aws/index.ts'
import { isForbidden } from '../../kube/index.ts'
import { ReconcileError } from '../../runtime/index.ts'
import { CliError } from '../errors.ts'

/** Who is asking AWS, and for which hub. */
export interface Asking {
  readonly cluster: string
  readonly hub: EksCluster
  /** The ARN of whoever asks, where it is known. */
  readonly caller?: string | undefined
}

/** An error of a grant, for the person whose credentials were used: what they may not do, and the policy that would let them. */
export const refusalFor = (error: unknown, about: Asking): unknown => {
  if (isForbidden(error))
    return new CliError(`you may not let cluster ${about.cluster} in: ${error.serverMessage}`, {
      next: 'ask for that right, and run the same command again',
      cause: error,
    })
  const cause = awsErrorIn(error)
  const { cluster, hub, caller = 'you' } = about
  const reason = cause?.reason
  if (cause && reason === 'SourceFailed')
    return new CliError(`cluster ${cluster} asks to join by aws-irsa, and its role cannot be made: ${cause.what}`, {
      next: cause.next,
      cause: error,
    })
  if (cause && (reason === 'InvalidCredentials' || reason === 'ExpiredToken'))
    return new CliError(`cluster ${cluster} is not let in: AWS does not take your credentials: ${cause.what}`, {
      next: `get new ones for account ${hub.account}: aws sso login, AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret`,
      cause: error,
    })
  if (cause && reason === 'AccessDenied') {
    const statement = statementFor(hub, cause.action)
    return new CliError(`cluster ${cluster} is not let in: ${caller} may not do ${cause.action ?? 'that'} in AWS`, {
      next: [
        statement && `give them this statement: ${JSON.stringify(statement)}`,
        `all that accepting needs: lanyard aws prerequisites hub --hub-cluster-arn ${eksClusterArn(hub)}`,
      ]
        .filter(Boolean)
        .join('\n'),
      cause: error,
    })
  }
  if (error instanceof ReconcileError)
    return new CliError(textOf(error), { ...(error.next && { next: error.next }), cause: error.cause ?? error })
  return cause ? new CliError(cause.what, { next: cause.next, cause: error }) : error
}

/** Of the policy that the specification gives the creator role, the part that allows one action. */
const statementFor = (hub: EksCluster, action: string | undefined): Statement | undefined => {
  if (!action) return undefined
  const { Statement: statements } = creatorAccessPolicy(hub, { accessEntries: true, tags: true })
  const found = statements.find(({ Action }) => [Action].flat().includes(action))
  return found && { ...found, Action: action }
}

// The message of such an error ends with what to do next, which is told on lines of its own here.
const textOf = ({ message, next }: ReconcileError): string =>
  next && message.endsWith(`; ${next}`) ? message.slice(0, -next.length - 2) : message

const awsErrorIn = (error: unknown): AwsError | undefined => {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++)
    if (at instanceof AwsError) return at
  return undefined
}
