import { ClusterClaim, Klusterlet } from '../../api/index.ts'
import { decoded, Namespace, Secret, type Client, type SecretData } from '../../kube/index.ts'
import { defaultName, namespace } from '../../operator/contract.ts'
import { idClaim, secretKey, secretName } from '../../registration/contract.ts'
import type { Cluster } from '../cluster.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { Deployment } from '../deployment.ts'
import { hostedCluster } from '../hosted.ts'
import { agentNamespace } from '../leaving.ts'
import { gatherCredentials } from './add-on-view.ts'
import { perhaps, type Seen } from './faults.ts'
import { kindsOf, orNone, patienceMs, seen, silenceOf } from './look.ts'
import type { ManagedView, Way } from './snapshot.ts'
import { bootstrapWay, ownWay } from './way-to-hub.ts'

/** Looks at a managed cluster. `name` says which of its agents is meant, where it has several. */
export const gatherManaged = async (
  cli: Cli,
  { client, connection }: Pick<Cluster, 'client' | 'connection'>,
  { name, isHub }: { name: string | undefined; isHub: boolean },
): Promise<{ view: ManagedView; name: string | undefined }> => {
  const { signal } = cli
  const silence = await silenceOf(client, 'managed', signal)
  const call = { timeoutMs: patienceMs, signal }
  const see = <T>(look: () => Promise<T>): Promise<Seen<T>> =>
    silence ? Promise.resolve({ unseen: silence.why }) : seen(look(), signal)
  const klusterlets = await see(() => orNone(client.of(Klusterlet).list(call)))
  const klusterlet = chosen(perhaps(klusterlets) ?? [], name)
  const place = klusterlet ? agentNamespace(klusterlet) : namespace.agent
  // In mode Hosted all of the agent is here, and what it manages elsewhere.
  const hosted = await see(async () => klusterlet && hostedCluster(cli, client, klusterlet))
  const seeManaged = <T>(look: (there: Client) => Promise<T>): Promise<Seen<T>> =>
    'is' in hosted ? see(() => look(hosted.is?.client ?? client)) : Promise.resolve(hosted)
  const secretData = async (of: string): Promise<SecretData | undefined> =>
    decoded(await client.of(Secret, place).find(of, call))
  const [ids, kinds, deployments, bootstrap, credential, namespaces, addOnCredentials] = await Promise.all([
    seeManaged((there) => idsOf(there, signal)),
    seeManaged((there) => kindsOf(there, signal)),
    see(async () => {
      const lists = [...new Set([namespace.operator, place])].map((one) => client.of(Deployment, one).list(call))
      return (await Promise.all(lists)).flatMap(({ items }) => items)
    }),
    see(() => secretData(secretName.bootstrap)),
    see(() => secretData(secretName.hub)),
    seeManaged(async (there) => {
      const { items } = await there.of(Namespace).list({ metadataOnly: true, ...call })
      return new Set(items.map(({ metadata }) => metadata.name!))
    }),
    seeManaged((there) => gatherCredentials(there, signal)),
  ])
  perhaps(hosted)?.client.close()
  const own = perhaps(credential)
  const joinedAs = klusterlet?.spec?.clusterName || own?.[secretKey.clusterName]
  if (name && joinedAs && joinedAs !== name)
    throw new CliError(`the managed cluster ${connection.server} has joined as ${joinedAs}, not as ${name}`, {
      next: `ask about that: ${cli.program} doctor ${joinedAs}; or choose another managed cluster`,
    })
  const asked = name ?? joinedAs
  const authType = klusterlet?.spec?.registrationConfiguration?.registrationDriver?.authType ?? 'csr'
  // What proves a cluster by other drivers is known to its pod alone.
  const certificate: typeof credential =
    authType === 'csr'
      ? { is: own?.[secretKey.kubeconfig] ? own : undefined }
      : { unseen: `a credential of the kind ${authType} cannot be tried from here` }
  const [way, itsOwnWay] = await Promise.all([
    lookAlong(bootstrap, asked, signal, (data, of) =>
      bootstrapWay(cli, { data, source: `secret ${place}/${secretName.bootstrap}`, name: of }),
    ),
    lookAlong(certificate, asked, signal, (data, of) =>
      ownWay(cli, { data, source: `secret ${place}/${secretName.hub}`, name: of }),
    ),
  ])
  const view: ManagedView = {
    server: connection.server,
    silence,
    isHub,
    ids,
    kinds,
    klusterlet: 'is' in klusterlets ? { is: klusterlet } : klusterlets,
    deployments,
    namespace: place,
    bootstrap,
    credential,
    way,
    ownWay: itsOwnWay,
    namespaces,
    addOnCredentials,
  }
  return { view, name: asked }
}

const chosen = (all: readonly Klusterlet[], name: string | undefined): Klusterlet | undefined =>
  all.find(({ spec }) => name !== undefined && spec?.clusterName === name) ??
  all.find(({ metadata }) => metadata.name === defaultName.klusterlet) ??
  all[0]

const idsOf = async (client: Client, signal: AbortSignal): Promise<string[]> => {
  const call = { timeoutMs: patienceMs, signal }
  const [system, claims] = await Promise.all([
    client.of(Namespace).find('kube-system', call),
    orNone(client.of(ClusterClaim).list(call)),
  ])
  const claim = claims.find(({ metadata }) => metadata.name === idClaim)?.spec?.value
  return [system?.metadata.uid, claim].filter((id) => id !== undefined && id !== '') as string[]
}

const lookAlong = (
  secret: Seen<SecretData | undefined>,
  name: string | undefined,
  signal: AbortSignal,
  go: (data: SecretData, name: string) => Promise<Way>,
): Promise<Seen<Way>> => {
  if (!('is' in secret)) return Promise.resolve(secret)
  if (!secret.is) return Promise.resolve({ unseen: 'there is no such secret' })
  if (!name) return Promise.resolve({ unseen: 'nothing says what the cluster is called' })
  return seen(go(secret.is, name), signal)
}
