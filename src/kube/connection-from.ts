import type { Connection, Impersonation } from './connection.ts'
import { KubeconfigError, listed, quoted } from './kubeconfig-error.ts'
import type { KubeconfigCluster, KubeconfigContext, KubeconfigUser } from './kubeconfig-schema.ts'
import type { Entry, Kubeconfig } from './kubeconfig.ts'
import { checkedProxy, proxyFor } from './proxy.ts'
import { credentialOf } from './user-credential.ts'
import type { UserCredentialOptions } from './user-credential.ts'
import { closest } from './words/index.ts'

export interface ConnectionOptions extends UserCredentialOptions {
  /** Instead of the current context. */
  context?: string | undefined
  /** Instead of the context's cluster. */
  cluster?: string | undefined
  /** Instead of the context's user. */
  user?: string | undefined
  /** Instead of the context's namespace. */
  namespace?: string | undefined
  /** Instead of what the user's `as` fields ask for. */
  impersonate?: Impersonation | undefined
}

/** The connection that a context of the kubeconfig describes, read as kubectl reads it. Files are opened when credentials are asked for. */
export const connectionFrom = (kubeconfig: Kubeconfig, options: ConnectionOptions = {}): Connection => {
  const { env = {} } = options
  const context = contextOf(kubeconfig, options)
  const cluster = clusterOf(kubeconfig, context, options)
  const user = userOf(kubeconfig, context, options)
  const server = serverOf(cluster)
  const proxy = cluster.value['proxy-url']
  const proxyUrl = proxy ? checkedProxy(proxy, `proxy-url of ${cluster.source}`) : proxyFor(server, env)
  return {
    source: (context ?? cluster).source,
    server,
    namespace: namespaceOf(context, options),
    tlsServerName: cluster.value['tls-server-name'],
    insecureSkipTlsVerify: cluster.value['insecure-skip-tls-verify'],
    proxyUrl,
    disableCompression: cluster.value['disable-compression'],
    impersonate: options.impersonate ?? impersonationOf(user),
    credentials: credentialOf({ ...cluster, value: { ...cluster.value, server } }, user, options),
  }
}

/** The entry, its `source` extended for messages: `user "ann" of ~/.kube/config (context "dev")`. */
const entryOf = <T>(
  kind: 'context' | 'cluster' | 'user',
  entries: ReadonlyMap<string, Entry<T>>,
  name: string,
  wantedBy: string,
  via = '',
): Entry<T> => {
  const entry = entries.get(name)
  if (entry) return { ...entry, source: `${kind} ${quoted(name)} of ${entry.source}${via}` }
  const near = closest(name, [...entries.keys()])
  const known = entries.size > 0 ? `known: ${listed([...entries.keys()])}` : `it has no ${kind}s at all`
  throw new KubeconfigError({
    source: wantedBy,
    problem: `there is no ${kind} ${quoted(name)}`,
    next: near === undefined ? known : `did you mean ${quoted(near)}? ${known}`,
  })
}

const contextOf = (kubeconfig: Kubeconfig, options: ConnectionOptions): Entry<KubeconfigContext> | undefined => {
  const name = options.context ?? kubeconfig.currentContext
  if (name) return entryOf('context', kubeconfig.contexts, name, sourceOf(kubeconfig))
  if (options.cluster) return undefined
  if (kubeconfig.sources.length === 0) {
    const looked = kubeconfig.missing.length > 0 ? ` (looked for ${listed(kubeconfig.missing)})` : ''
    const next = 'name one with --kubeconfig or $KUBECONFIG'
    throw new KubeconfigError({ source: 'kubeconfig', problem: `no kubeconfig was found${looked}`, next })
  }
  const contexts = [...kubeconfig.contexts.keys()]
  const next = contexts.length > 0 ? `choose a context: ${listed(contexts)}` : 'add a context to it'
  throw new KubeconfigError({ source: sourceOf(kubeconfig), problem: 'it has no current-context', next })
}

const viaOf = ({ currentContext }: Kubeconfig, { context = currentContext }: ConnectionOptions): string =>
  context ? ` (context ${quoted(context)})` : ''

const sourceOf = ({ sources }: Kubeconfig): string => sources.join(', ') || 'kubeconfig'

const clusterOf = (
  kubeconfig: Kubeconfig,
  context: Entry<KubeconfigContext> | undefined,
  options: ConnectionOptions,
): Entry<KubeconfigCluster> => {
  const source = context?.source ?? sourceOf(kubeconfig)
  const name = options.cluster ?? context?.value.cluster
  if (!name) throw new KubeconfigError({ source, problem: 'it names no cluster', next: 'set its field "cluster"' })
  return entryOf('cluster', kubeconfig.clusters, name, source, viaOf(kubeconfig, options))
}

/** A context without a user is anonymous, as for kubectl. */
const userOf = (
  kubeconfig: Kubeconfig,
  context: Entry<KubeconfigContext> | undefined,
  options: ConnectionOptions,
): Entry<KubeconfigUser> | undefined => {
  const name = options.user ?? context?.value.user
  const source = context?.source ?? sourceOf(kubeconfig)
  return name ? entryOf('user', kubeconfig.users, name, source, viaOf(kubeconfig, options)) : undefined
}

const serverOf = ({ value, source }: Entry<KubeconfigCluster>): string => {
  const fail = (problem: string): KubeconfigError =>
    new KubeconfigError({ source, problem, next: 'write it as https://host:port' })
  const { server } = value
  if (!server) throw fail('server is missing')
  // kubectl takes host:port too, and speaks plain HTTP to it unless a CA is given. We never choose that by ourselves.
  const text = server.includes('://') ? server : `https://${server}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url?.hostname || !['https:', 'http:'].includes(url.protocol)) throw fail(`server ${quoted(server)} is not a URL`)
  if (url.username || url.password) throw fail('server holds a user name or password; those belong to a user')
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

const namespaceOf = (context: Entry<KubeconfigContext> | undefined, options: ConnectionOptions): string | undefined => {
  const namespace = options.namespace ?? context?.value.namespace
  if (!namespace || /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) return namespace
  throw new KubeconfigError({
    source: options.namespace ? 'namespace' : (context?.source ?? 'namespace'),
    problem: `${quoted(namespace)} cannot be the name of a namespace`,
    next: 'use at most 63 lower-case letters, digits and -',
  })
}

const impersonationOf = (user: Entry<KubeconfigUser> | undefined): Impersonation | undefined => {
  if (!user) return undefined
  const { as, 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = user.value
  if (as) return { user: as, uid, groups, extra }
  if (!uid && !groups?.length && !Object.keys(extra ?? {}).length) return undefined
  const problem = 'it asks for a uid, groups or extra of someone else (as-uid, as-groups, as-user-extra) without a user'
  throw new KubeconfigError({ source: user.source, problem, next: 'set "as" too' })
}
