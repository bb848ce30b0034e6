import { firstOf, type Reason } from '../../../runtime/index.ts'
import { tokenLifetime } from '../../contract.ts'

/** One year: as long as a client certificate usually lasts. */
export const defaultLifetimeSeconds = 31_536_000
/** Below this a token is for tests: everything that can go wrong for an hour cuts add-ons off. */
export const leastForProduction = 3600
const { least, most } = tokenLifetime

const field = '--addon-token-expiration-seconds (token.expirationSeconds of the Klusterlet)'

/** What to ask for: absent and 0 are one year. The API server may grant less, and that counts. */
export const lifetimeOf = (seconds: number | undefined): number => seconds || defaultLifetimeSeconds

/** Why no API server would issue a token of this lifetime. */
export const impossibleLifetime = firstOf<number>([
  (seconds) =>
    !Number.isInteger(seconds) && {
      reason: 'LifetimeNotWhole',
      message: `${field} is ${seconds}: write whole seconds, at least ${least}`,
    },
  (seconds) =>
    seconds < least && {
      reason: 'LifetimeTooShort',
      message: `${field} is ${seconds}: Kubernetes issues tokens of ${least} seconds or more; ${leastForProduction} is the least that makes sense outside of tests`,
    },
  (seconds) =>
    seconds > most && {
      reason: 'LifetimeTooLong',
      message: `${field} is ${seconds}: Kubernetes takes at most ${most}; leave it out for one year`,
    },
])

/** What an operator should hear about a lifetime that works. */
export const doubtfulLifetime = (seconds: number): Reason | undefined =>
  seconds < leastForProduction && !impossibleLifetime(seconds)
    ? {
        reason: 'LifetimeForTests',
        message: `${field} is ${seconds}: below ${leastForProduction} an outage of minutes cuts add-ons off; use it for tests only`,
      }
    : undefined
