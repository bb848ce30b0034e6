/** What can be wrong between a cluster and its hub. The names are stable: docs/troubleshooting.md has an entry for each. */
export const faults = [
  'hub-unreachable',
  'wrong-ca',
  'managed-unreachable',
  'crd-missing',
  'operator-not-running',
  'hub-not-running',
  'webhook-down',
  'klusterlet-missing',
  'agent-not-running',
  'no-bootstrap-secret',
  'bootstrap-secret-broken',
  'bootstrap-token-expired',
  'bootstrap-forbidden',
  'cluster-not-created',
  'cluster-name-taken',
  'finalizer-stuck',
  'not-accepted',
  'denied-after-accept',
  'acceptance-failed',
  'namespace-missing',
  'namespace-terminating',
  'rbac-missing',
  'csr-pending',
  'csr-denied',
  'csr-failed',
  'hub-secret-missing',
  'credential-refused',
  'certificate-expired',
  'certificate-expiring',
  'lease-stale',
  'clock-skew',
  'work-failing',
  'aws-clock-skew',
  'aws-no-credentials',
  'aws-wrong-account',
  'aws-role-missing',
  'aws-trust-mismatch',
  'aws-tag-mismatch',
  'aws-mapping-missing',
  'aws-role-refused',
  'addon-not-installed',
  'addon-unknown',
  'addon-invalid',
  'addon-misconfigured',
  'addon-registration-failed',
  'addon-driver-unsupported',
  'addon-account-missing',
  'addon-namespace-missing',
  'addon-csr-pending',
  'addon-csr-denied',
  'addon-signer-missing',
  'addon-credential-failing',
  'addon-secret-missing',
  'addon-token-expired',
  'addon-not-deployed',
  'addon-unavailable',
] as const
export type Fault = (typeof faults)[number]

/** Which of the two clusters something is about. */
export type Side = 'hub' | 'managed'

/** A command for a person, and where it is to be run. */
export interface Advice {
  readonly on: Side
  readonly command: string
}

/** Why a step is stuck, and the one command that moves it on. */
export interface Finding extends Advice {
  readonly fault: Fault
  readonly why: string
}

/** How one step of the join stands. */
export type StepResult =
  | { readonly step: string; readonly state: 'ok' }
  | ({ readonly step: string; readonly state: 'stuck' } & Finding)
  | { readonly step: string; readonly state: 'unknown'; readonly why: string }

/** What was found, or why nobody could look. */
export type Seen<T> = { readonly is: T } | { readonly unseen: string }

/** A check needs something that could not be looked at. */
class Unseen extends Error {}

/** What was seen. Ends the check where nothing was: its step is then neither good nor bad. */
export const known = <T>(seen: Seen<T>): T => {
  if ('is' in seen) return seen.is
  throw new Unseen(seen.unseen)
}

/** What was seen, or undefined where nobody could look. */
export const perhaps = <T>(seen: Seen<T> | undefined): T | undefined => (seen && 'is' in seen ? seen.is : undefined)

export const unseen = (why: string): never => {
  throw new Unseen(why)
}

/** One rule. It touches neither clock nor network. */
export type Rule<S> = (snapshot: S) => Finding | false | undefined

/** One step of the way, and what can hold it up; the order is the policy. */
export interface Step<S> {
  readonly step: string
  readonly rules: readonly Rule<S>[]
}

/** Every step with the first thing that holds it up. */
export const walk = <S>(steps: readonly Step<S>[], snapshot: S): StepResult[] =>
  steps.map(({ step, rules }): StepResult => {
    let blind: string | undefined
    for (const rule of rules) {
      try {
        const finding = rule(snapshot)
        if (finding) return { step, state: 'stuck', ...finding }
      } catch (error) {
        if (!(error instanceof Unseen)) throw error
        blind ??= error.message
      }
    }
    return blind === undefined ? { step, state: 'ok' } : { step, state: 'unknown', why: blind }
  })
