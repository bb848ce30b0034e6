import { label, signer, subject } from '../../../api/index.ts'
import type { Environment } from '../../../kube/index.ts'
import { secretKey } from '../../contract.ts'
import type { AgentDriver, AgentIdentity, CredentialDriver } from '../driver.ts'
import { asBootstrapUser, asHolder, hubFromKubeconfig } from '../kubeconfig-hub.ts'
import { expiresAt, renewAt, unusable } from './credential.ts'
import { obtain } from './obtain.ts'
import type { Recipe } from './request.ts'

export interface CsrAgentOptions {
  /** How long certificates should last; the hub's signer decides if absent. The API wants at least 600. */
  expirationSeconds?: number | undefined
  signerName?: string | undefined
  /** How long the name of a request may be: an endpoint that knows clusters by it needs the whole prefix. */
  longestName?: number | undefined
  /** For the proxy settings. */
  env?: Environment | undefined
}

const leastSeconds = 600

/** Client certificates from the hub's signer, for the cluster and for its add-ons. */
export const csrAgentDriver = (options: CsrAgentOptions = {}): AgentDriver => {
  const { expirationSeconds, signerName = signer.kubeApiServerClient, longestName, env } = options
  if (expirationSeconds !== undefined && !(Number.isInteger(expirationSeconds) && expirationSeconds >= leastSeconds))
    throw new RangeError(
      `clientCertExpirationSeconds is ${expirationSeconds}: Kubernetes issues certificates of ${leastSeconds} seconds or more, or leave it out`,
    )
  const forCluster = ({ cluster, agent }: AgentIdentity): Recipe => ({
    subject: {
      user: subject.agentUser(cluster, agent),
      groups: [subject.clusterGroup(cluster), subject.managedClusters],
    },
    signerName,
    prefix: cluster,
    longestName,
    labels: { [label.clusterName]: cluster },
    expirationSeconds,
    approver: `hub cluster-admin approval: run clusteradm accept --clusters ${cluster} on the hub`,
  })
  return {
    name: 'csr',
    ...credentialDriver(forCluster),
    describe: (cluster) => cluster,
    hubOf: (bootstrap, source) => hubFromKubeconfig(bootstrap, source, env),
    asBootstrap: (bootstrap, source, client) => asBootstrapUser(bootstrap, source, client, env),
    asCluster: (secret, hub, client) =>
      asHolder(() => ({ cert: secret()[secretKey.certificate], key: secret()[secretKey.key] }), hub, client),
    kubeconfigUser: () => ({ certFile: secretKey.certificate, keyFile: secretKey.key }),
    forAddOn: ({ addOn, user, groups, organizationalUnits, signerName: ofAddOn, dnsNames }) =>
      credentialDriver(({ cluster }) => ({
        subject: { user, groups, organizationalUnits },
        signerName: ofAddOn,
        // Approvers in the field take only names that begin with "addon".
        prefix: `addon-${cluster}-${addOn}`,
        longestName,
        labels: { [label.clusterName]: cluster, [label.addOnName]: addOn },
        dnsNames,
        expirationSeconds,
        approver:
          ofAddOn === signer.kubeApiServerClient
            ? `the hub's approver for add-on ${addOn}`
            : `the hub's approver for add-on ${addOn} and signer ${ofAddOn}; if nobody on the hub serves it, install what does, or correct signerName in status.registrations`,
        unsigned:
          ofAddOn === signer.kubeApiServerClient
            ? 'the hub signs no client certificates (its kube-controller-manager has no signing key, or it is EKS): give add-ons tokens, with --addon-kubeclient-registration-auth=token'
            : `nobody on the hub serves the signer ${ofAddOn}: install what does, or correct signerName in status.registrations`,
      })),
  }
}

/** A certificate for whatever the recipe says, kept in a secret. */
export const credentialDriver = (recipeFor: (identity: AgentIdentity) => Recipe): CredentialDriver => ({
  unusable: (secret, { identity, now }) => unusable(secret, recipeFor(identity).subject, now),
  renewAt,
  expiresAt,
  obtain: (context) => obtain(recipeFor(context.identity), context),
})
