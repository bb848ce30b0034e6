import { UsageError } from '../../main/flags.ts'
import type { FleetGrant } from './fleet.ts'

/** Somebody as the API server of a cluster sees them. */
export interface Identity {
  readonly user?: string | undefined
  readonly groups: readonly string[]
  /** A ManagedServiceAccount: which user it is depends on the cluster. */
  readonly account?: string | undefined
}

const forms = 'write user:NAME, group:NAME, sa:NAMESPACE/NAME or msa:NAME'
const kinds: Record<string, 'user' | 'group' | 'sa' | 'msa'> = {
  user: 'user',
  group: 'group',
  sa: 'sa',
  serviceaccount: 'sa',
  msa: 'msa',
  managedserviceaccount: 'msa',
}

/** Reads SUBJECT: `ada`, `user:ada`, `group:ops`, `sa:shop/web`, `msa:ci`, `system:serviceaccount:shop:web`. */
export const identityFrom = (word: string, groups: readonly string[] = []): Identity => {
  const [, prefix = '', rest = ''] = /^([A-Za-z]+):(.*)$/s.exec(word) ?? []
  // User names of Kubernetes itself begin with `system:`; others may hold colons too.
  const kind = kinds[prefix.toLowerCase()] ?? 'user'
  const name = kinds[prefix.toLowerCase()] ? rest : word
  if (!name) throw new UsageError(`${JSON.stringify(word)} names nobody; ${forms}`)
  if (kind === 'group') return { groups: [name, ...groups] }
  if (kind === 'msa') return { account: name, groups: [...groups] }
  if (kind === 'user') {
    const [, namespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(name) ?? []
    return namespace && account
      ? { user: name, groups: [...accountGroups(namespace), ...groups] }
      : { user: name, groups: ['system:authenticated', ...groups] }
  }
  const [namespace = '', account = '', more] = name.split('/')
  if (!namespace || !account || more !== undefined)
    throw new UsageError(`${JSON.stringify(word)} is not a service account; write sa:NAMESPACE/NAME`)
  return { user: userOf(namespace, account), groups: [...accountGroups(namespace), ...groups] }
}

const userOf = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`

// What Kubernetes puts every service account into.
const accountGroups = (namespace: string): string[] => [
  'system:serviceaccounts',
  `system:serviceaccounts:${namespace}`,
  'system:authenticated',
]

/** Whether a grant is for somebody, by the rules of RBAC: undefined when not, else the group through which, or nothing. */
export const isFor = (
  { subject, serviceAccount, cluster }: FleetGrant,
  identity: Identity,
  accountNamespace: (cluster: string) => string,
): { group?: string } | undefined => {
  const { user, groups, account } = identity
  const here = account === undefined ? user : userOf(accountNamespace(cluster), account)
  const ofAccount = account === undefined ? [] : accountGroups(accountNamespace(cluster))
  if (subject.kind === 'Group')
    return [...groups, ...ofAccount].includes(subject.name) ? { group: subject.name } : undefined
  const is =
    subject.kind === 'User'
      ? subject.name
      : userOf(serviceAccount?.namespace ?? subject.namespace ?? '', serviceAccount?.name ?? subject.name)
  return is === here ? {} : undefined
}
