import type { Klusterlet } from '../../api/index.ts'
import { firstOf, type Check } from '../../runtime/index.ts'
import { namespace } from '../contract.ts'
import { isHosted } from './spec.ts'

/** Where an agent runs and what it is called. */
export interface Place {
  readonly klusterlet: string
  /** Of the agent and its secrets, on the cluster where it runs. */
  readonly namespace: string
  readonly hosted: boolean
}

export const placeOf = ({ metadata, spec = {} }: Klusterlet): Place => {
  const klusterlet = metadata.name!
  const hosted = isHosted(spec)
  return { klusterlet, hosted, namespace: hosted ? klusterlet : spec.namespace || namespace.agent }
}

const reserved = new Set<string>([namespace.operator, namespace.hub, namespace.addOns, 'default'])

interface Claim {
  place: Place
  others: readonly Place[]
}

const checks: Check<Claim>[] = [
  ({ place }) =>
    (reserved.has(place.namespace) || place.namespace.startsWith('kube-')) && {
      reason: 'NamespaceReserved',
      message: place.hosted
        ? `a hosted agent runs in the namespace with its Klusterlet's name, and ${place.namespace} is taken; name the Klusterlet otherwise`
        : `spec.namespace ${place.namespace} is used for something else; choose another one`,
    },
  ({ place, others }) => {
    const other = others.find((one) => one.namespace === place.namespace && one.klusterlet !== place.klusterlet)
    return (
      other && {
        reason: 'NamespaceTaken',
        message: `Klusterlet ${other.klusterlet} runs its agent in namespace ${place.namespace}; choose another one`,
      }
    )
  },
]

/** Why an agent cannot run where its Klusterlet wants it; undefined when it can. `others` came before it. */
export const placeRefusal = firstOf(checks)
