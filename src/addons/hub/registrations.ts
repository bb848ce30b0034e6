import type { ManagedClusterAddOn } from '../../api/index.ts'
import type { Registration } from '../contract.ts'
import type { AddOn, RegistrationRequest } from './definition.ts'

/** The items of an add-on: what its definition asks for, with what the agent has filled in since. */
export const registrationsOf = (addOn: ManagedClusterAddOn, { registrations }: AddOn): Registration[] => {
  const present = addOn.status?.registrations ?? []
  return registrations.map((wanted) => itemFor(addOn.metadata.namespace!, wanted, present))
}

const itemFor = (cluster: string, wanted: RegistrationRequest, present: readonly Registration[]): Registration => {
  if (wanted.type === 'kubeClient') {
    const { kubeClient } = present.find(({ type }) => type === 'kubeClient') ?? {}
    return kubeClient ? { type: 'kubeClient', kubeClient } : { type: 'kubeClient' }
  }
  const { signerName, subject } = wanted
  const before = present.find(({ customSigner }) => customSigner?.signerName === signerName)?.customSigner
  // Only the definition decides what is signed; without a word of it, the agent says what it will ask for.
  const said = subject?.(cluster)
  const whom = said
    ? {
        user: said.user,
        ...(said.groups && { groups: [...said.groups] }),
        ...(said.organizationUnits && { organizationUnits: [...said.organizationUnits] }),
      }
    : before?.subject
  return { type: 'customSigner', customSigner: { signerName, ...(whom && { subject: whom }) } }
}
