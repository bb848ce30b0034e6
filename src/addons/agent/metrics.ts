import type { Metrics } from '../../runtime/index.ts'
import type { DriverCounts } from '../drivers/index.ts'

/** A credential as it is seen from outside. */
export interface SeenCredential {
  readonly addOn: string
  readonly secret: string
  readonly driver: string
  readonly expiresAt: number | undefined
  /** Of tokens. */
  readonly issuedAt: number | undefined
}

/** Registers the metrics of add-on credentials; `credentials` is read when somebody asks. */
export const addOnMetrics = (
  metrics: Metrics,
  credentials: () => Iterable<SeenCredential>,
  now: () => number,
): DriverCounts => {
  metrics
    .gauge('lanyard_addon_credential_expiry_seconds', 'How long the credential of an add-on lasts; 0 when it has none')
    .readEach(function* () {
      for (const { addOn, secret, driver, expiresAt } of credentials()) {
        const left = expiresAt === undefined ? 0 : Math.max(0, (expiresAt - now()) / 1000)
        yield [{ addon: addOn, secret, driver }, left] as const
      }
    })
  metrics
    .gauge('lanyard_addon_token_age_seconds', 'How long ago the token of an add-on was issued')
    .readEach(function* () {
      for (const { addOn, secret, issuedAt } of credentials())
        if (issuedAt !== undefined) yield [{ addon: addOn, secret }, Math.max(0, (now() - issuedAt) / 1000)] as const
    })
  const issued = metrics.counter('lanyard_addon_tokens_issued_total', 'Tokens by add-on and why they were requested')
  const failed = metrics.counter('lanyard_addon_token_failures_total', 'Tokens that were not issued, by reason')
  const certificates = metrics.counter('lanyard_addon_certificates_total', 'Certificates for add-ons by result')
  return {
    tokenIssued: (addon, reason) => issued.inc({ addon, reason }),
    tokenFailed: (addon, reason) => failed.inc({ addon, reason }),
    certificateIssued: (addon) => certificates.inc({ addon, result: 'issued' }),
    certificateFailed: (addon) => certificates.inc({ addon, result: 'failed' }),
  }
}
