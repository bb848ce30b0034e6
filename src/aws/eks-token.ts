import { realClock, type Clock } from './clock.ts'
import type { CredentialSource } from './credentials.ts'
import { endpointOf } from './endpoints.ts'
import { AwsError, AwsInputError } from './errors.ts'
import { Refreshed } from './refreshed.ts'
import { presigned } from './sigv4.ts'

/** A bearer token that EKS takes: whoever asks STS with it learns who we are. */
export interface EksToken {
  token: string
  expiration: number
}

export interface EksTokenOptions {
  /** The name of the EKS cluster, or whatever id its aws-iam-authenticator was given. */
  clusterName: string
  region: string
  source: CredentialSource
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

/** EKS takes a token for 15 minutes after it was signed; a minute of that is left for clocks that differ. */
const lifetimeMs = 14 * 60_000
/** For how long STS itself takes the URL. The authenticator wants it between 0 and 15 minutes; the AWS CLI says 60 s. */
const urlSeconds = 60
/** The authenticator reads no longer tokens. */
const longestToken = 4096

/** Mints one token: a presigned GetCallerIdentity that names the cluster. No call is made, unless for credentials. */
export const mintEksToken = async (options: EksTokenOptions, signal?: AbortSignal): Promise<EksToken> => {
  const { clusterName, region, source, clock = realClock } = options
  if (!/^[\x21-\x7e]{1,255}$/.test(clusterName))
    throw new AwsInputError(`${JSON.stringify(clusterName)} is not the name of a cluster`, 'name the EKS cluster')
  const credentials = await source(signal)
  const now = clock.now()
  // Always AWS's own endpoint: the authenticator takes no other.
  const { url } = endpointOf('sts', region)
  url.search = 'Action=GetCallerIdentity&Version=2011-06-15'
  const scope = { credentials, service: 'sts', region, now }
  const signedUrl = presigned({ url, headers: { 'x-k8s-aws-id': clusterName }, expiresSeconds: urlSeconds }, scope)
  const token = `k8s-aws-v1.${Buffer.from(signedUrl.href).toString('base64url')}`
  if (token.length > longestToken)
    throw new AwsError({
      reason: 'Other',
      message: `the token for ${clusterName} has ${token.length} bytes, and EKS reads ${longestToken}: the session token is too long`,
      next: 'use fewer session tags, or a shorter session policy',
      policy: { kind: 'stall' },
    })
  // It dies with the credentials that signed it.
  return { token, expiration: Math.min(now + lifetimeMs, credentials.expiration ?? Number.POSITIVE_INFINITY) }
}

/** Tokens that are renewed ahead of time, by one minting at a time. */
export const eksTokens = (options: EksTokenOptions): ((signal?: AbortSignal) => Promise<EksToken>) => {
  const { clock = realClock, random = Math.random } = options
  const tokens = new Refreshed<EksToken>({
    obtain: (signal) => mintEksToken(options, signal),
    clock,
    random,
    backOff: () => 0, // the source backs off; minting itself cannot fail
  })
  return (signal) => tokens.get(signal)
}
