import { crds, installCrds, ManagedCluster, ManagedServiceAccount } from '../src/api/index.ts'
import { ClusterRole, ClusterRoleBinding, Namespace, Secret, ServiceAccount } from '../src/kube/index.ts'
import { contentDigest, defaultAgentNamespace, managedLabels, mark, tokenKey } from '../src/serviceaccounts/contract.ts'
import { ownerReference } from '../src/runtime/metadata.ts'
import type { ControlPlane } from './control-plane.ts'

/** A token that a managed cluster has issued. */
export interface Minted {
  token: string
  expires: string
  /** How the API server calls this very token: the `credential-id` of who uses it. */
  id: string
  /** Ends it at once, long before its time. The API server may take it for up to ten seconds more. */
  revoke(): Promise<unknown>
}

/** A hub and managed clusters with accounts, and a hand that does what their agents do: the moment of a rotation is the test's. */
export class TokenScene {
  readonly hub: ControlPlane
  readonly #clusters = new Map<string, ControlPlane>()
  #minted = 0

  constructor(hub: ControlPlane) {
    this.hub = hub
  }

  /** Lets a cluster join. Its accounts may read pods. */
  async join(cluster: string, plane: ControlPlane, labels: Record<string, string> = {}): Promise<void> {
    this.#clusters.set(cluster, plane)
    const admin = this.hub.client()
    await admin.of(Namespace).create({ metadata: { name: cluster } })
    const url = `${plane.server}/`
    const spec = { hubAcceptsClient: true, managedClusterClientConfigs: [{ url }] }
    await admin.of(ManagedCluster).create({ metadata: { name: cluster, labels }, spec })
    const managed = plane.client()
    await managed.of(Namespace).create({ metadata: { name: defaultAgentNamespace } })
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }]
    await managed.of(ClusterRole).create({ metadata: { name: 'pods' }, rules })
    await managed.of(ClusterRoleBinding).create({
      metadata: { name: 'pods' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'pods' },
      subjects: [
        {
          apiGroup: 'rbac.authorization.k8s.io',
          kind: 'Group',
          name: `system:serviceaccounts:${defaultAgentNamespace}`,
        },
      ],
    })
  }

  /** A ManagedServiceAccount with its account, and no token yet. */
  async account(cluster: string, name: string, labels: Record<string, string> = {}): Promise<void> {
    const metadata = { name, namespace: cluster, labels }
    await this.hub.client().of(ManagedServiceAccount).create({ metadata, spec: {} })
    const account = { metadata: { name, namespace: defaultAgentNamespace, labels: { ...managedLabels } } }
    await this.#managed(cluster).client().of(ServiceAccount).create(account)
  }

  /** A new token. It is bound to a Secret, so that it alone can be revoked. */
  async mint(cluster: string, name: string): Promise<Minted> {
    const managed = this.#managed(cluster).client()
    const bound = { name: `${name}-${++this.#minted}`, namespace: defaultAgentNamespace }
    const { metadata } = await managed.of(Secret).create({ metadata: bound })
    const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', name: bound.name, uid: metadata.uid }
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3600, boundObjectRef },
    }
    const { status } = await managed
      .of(ServiceAccount, defaultAgentNamespace)
      .subresource<{ status: { token: string; expirationTimestamp: string } }>(name, 'token', { method: 'POST', body })
    const { jti } = JSON.parse(Buffer.from(status.token.split('.')[1]!, 'base64url').toString()) as { jti: string }
    return {
      token: status.token,
      expires: status.expirationTimestamp,
      id: `JTI=${jti}`,
      revoke: () => managed.of(Secret, defaultAgentNamespace).delete(bound.name),
    }
  }

  /** Puts it on the hub, as the contract says. */
  async report(cluster: string, name: string, { token, expires }: Pick<Minted, 'token' | 'expires'>): Promise<void> {
    const admin = this.hub.client()
    const accounts = admin.of(ManagedServiceAccount, cluster)
    const account = await accounts.get(name)
    const { ca } = this.#managed(cluster)
    await admin.of(Secret).apply(
      {
        metadata: {
          name,
          namespace: cluster,
          labels: { ...managedLabels },
          annotations: { [mark.digest]: contentDigest({ ca, token }) },
          ownerReferences: [ownerReference(account, ManagedServiceAccount)],
        },
        type: 'Opaque',
        data: { [tokenKey.ca]: base64(ca), [tokenKey.token]: base64(token) },
      },
      { fieldManager: 'testkit', force: true },
    )
    const lastRefreshTimestamp = account.metadata.creationTimestamp!
    const status = { expirationTimestamp: expires, tokenSecretRef: { name, lastRefreshTimestamp } }
    await accounts.patch(name, { merge: { status } }, { subresource: 'status' })
  }

  async rotate(cluster: string, name: string): Promise<Minted> {
    const minted = await this.mint(cluster, name)
    await this.report(cluster, name, minted)
    return minted
  }

  #managed(cluster: string): ControlPlane {
    const plane = this.#clusters.get(cluster)
    if (!plane) throw new Error(`no cluster ${cluster} has joined this scene`)
    return plane
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** The scene on a hub, with all kinds and no clusters yet. */
export const startTokenScene = async (hub: ControlPlane): Promise<TokenScene> => {
  await installCrds(hub.client(), crds({ conversion: 'none', borrowed: true }))
  return new TokenScene(hub)
}
