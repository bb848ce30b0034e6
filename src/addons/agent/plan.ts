import { createHash } from 'node:crypto'
import { signer, type ManagedClusterAddOn } from '../../api/index.ts'
import type { Reason } from '../../runtime/index.ts'
import {
  accountNames,
  addOnDrivers,
  addOnSecretName,
  defaultCustomUser,
  defaultSubject,
  installNamespaceOf,
  isAddOnName,
  longestAddOnName,
  serviceAccountUser,
  type AddOnDriver,
  type Registration,
} from '../contract.ts'
import { readyAccount, type Item } from '../drivers/index.ts'

/** What the agent makes of an add-on's `status.registrations`. */
export interface Plan {
  /** The items with driver and subject filled in, as they should stand in the status. */
  readonly registrations: readonly Registration[]
  /** Those that can be served. */
  readonly items: readonly Item[]
  /** Why others cannot. */
  readonly problems: readonly Reason[]
}

export interface PlanOptions {
  readonly cluster: string
  /** As the flag has it: it may be a word that nobody knows. */
  readonly driver: string
}

/** Reads the items in their order. Pure: the same add-on and settings give the same plan. */
export const planOf = (addOn: ManagedClusterAddOn, options: PlanOptions): Plan => {
  const name = addOn.metadata.name!
  const registrations = addOn.status?.registrations ?? []
  if (registrations.length > 0 && !isAddOnName(name)) return { registrations, items: [], problems: [badName(name)] }
  const items: Item[] = []
  const problems: Reason[] = []
  const declared = registrations.map((registration, index) => {
    const made = declare(registration, addOn, options)
    if ('problem' in made) problems.push(made.problem)
    else if (items.some(({ secret }) => secret === made.item.secret)) problems.push(duplicate(registration, index))
    else items.push(made.item)
    return 'problem' in made ? registration : made.registration
  })
  return { registrations: declared, items, problems }
}

type Declared = { registration: Registration; item: Item } | { problem: Reason }

const declare = (registration: Registration, addOn: ManagedClusterAddOn, options: PlanOptions): Declared => {
  if (registration.type === 'kubeClient') return kubeClient(registration, addOn, options)
  if (registration.customSigner) return customSigner(registration, registration.customSigner, addOn, options)
  const message = `status.registrations has an item of type ${JSON.stringify(registration.type)}, which this agent does not know; upgrade the agent`
  return { problem: { reason: 'UnknownType', message } }
}

const kubeClient = (registration: Registration, addOn: ManagedClusterAddOn, options: PlanOptions): Declared => {
  const driver = addOnDrivers.find((one) => one === options.driver)
  if (!driver) return { problem: unknownDriver(options.driver) }
  const name = addOn.metadata.name!
  const { user, groups } =
    driver === 'token' ? account(registration, addOn, options) : person(registration, name, options)
  const subject = driver === 'token' ? { user } : { user, groups: [...groups] }
  return {
    registration: { ...registration, kubeClient: { ...registration.kubeClient, driver, subject } },
    item: {
      addOn: name,
      type: 'kubeClient',
      driver,
      signerName: signer.kubeApiServerClient,
      user,
      groups,
      organizationalUnits: [],
      namespace: installNamespaceOf(addOn),
      secret: addOnSecretName.kubeClient(name),
    },
  }
}

interface Who {
  user: string
  groups: readonly string[]
}

/** The service account: the one that the hub has made, else the one that is declared, else ours. */
const account = ({ kubeClient }: Registration, addOn: ManagedClusterAddOn, { cluster }: PlanOptions): Who => {
  const name = addOn.metadata.name!
  const ready = readyAccount(addOn, cluster)
  if (ready) return { user: serviceAccountUser(cluster, ready.account), groups: [] }
  const declared = accountNames(cluster, name).map((one) => serviceAccountUser(cluster, one))
  const present = kubeClient?.subject?.user
  return present && declared.includes(present) ? { user: present, groups: [] } : defaultSubject('token', cluster, name)
}

/** Who the certificate is for: what the add-on's controller said, and the usual where it said nothing. */
const person = ({ kubeClient }: Registration, name: string, { cluster }: PlanOptions): Who => {
  const usual = defaultSubject('csr', cluster, name)
  const { user, groups = [] } = kubeClient?.subject ?? {}
  // Left from the token driver: no certificate may be for a service account.
  if (!user || user.startsWith('system:serviceaccount:')) return usual
  return { user, groups: groups.length ? groups : usual.groups }
}

const customSigner = (
  registration: Registration,
  said: NonNullable<Registration['customSigner']>,
  addOn: ManagedClusterAddOn,
  { cluster }: PlanOptions,
): Declared => {
  const name = addOn.metadata.name!
  const user = said.subject?.user || defaultCustomUser(cluster, name)
  return {
    registration: { ...registration, customSigner: { ...said, subject: { ...said.subject, user } } },
    item: {
      addOn: name,
      type: 'customSigner',
      driver: 'csr',
      signerName: said.signerName,
      user,
      groups: said.subject?.groups ?? [],
      organizationalUnits: said.subject?.organizationUnits ?? [],
      namespace: installNamespaceOf(addOn),
      secret: possibleName(addOnSecretName.customSigner(name, said.signerName)),
    },
  }
}

const longestName = 253

/** Signers may have colons and 571 characters, and names of secrets may not: then a digest tells them apart. */
export const possibleName = (name: string): string => {
  if (name.length <= longestName && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) && !/\.[-.]|-\./.test(name))
    return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 16)
  const readable = name.replaceAll(/[^a-z0-9]+/g, '-').slice(0, longestName - digest.length - 1)
  return `${readable}-${digest}`
}

const badName = (name: string): Reason => ({
  reason: 'InvalidName',
  message: `an add-on cannot be called ${name}: it needs a name of at most ${longestAddOnName} small letters, digits and dashes, which labels and users can carry; create it again under such a name`,
})

const unknownDriver = (driver: string): Reason => ({
  reason: 'UnknownDriver',
  message: `the agent was started with --addon-kubeclient-registration-auth=${driver.slice(0, 50)}, which it does not know; use one of: ${addOnDrivers.join(', ')} (addOnKubeClientRegistrationDriver.authType of the Klusterlet)`,
})

const duplicate = ({ type, customSigner: of }: Registration, index: number): Reason => ({
  reason: 'DuplicateItem',
  message:
    type === 'kubeClient'
      ? `status.registrations[${index}] is a second kubeClient item, and there is one secret for it; the first one is served: remove the other from the add-on's registrations`
      : `status.registrations[${index}] is a second item for signer ${of?.signerName}, and there is one secret for each signer; the first one is served: remove the other from the add-on's registrations`,
})

/** What makes two items the same credential: another driver instance is needed when it differs. */
export const identityOf = (item: Item): string => JSON.stringify(item)

/** For whom the driver chosen by flag is known at all. */
export const isKnownDriver = (driver: string): driver is AddOnDriver => addOnDrivers.some((one) => one === driver)
