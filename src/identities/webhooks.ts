import { group, type AWSCluster } from '../api/index.ts'
import type { Secret } from '../kube/index.ts'
import {
  configurationsOf,
  guarding,
  mutating,
  validating,
  type Route,
  type Webhook,
  type WebhookConfiguration,
  type WebhookServerAddress,
} from '../runtime/webhook/index.ts'
import { defaultCluster, validateCluster } from './cluster-admission.ts'
import { identityResources, secretTypePrefix, type Identity, type IdentityKind } from './contract.ts'
import { validateIdentity, type IdentityAdmissionOptions } from './identity-admission.ts'
import { validateSecret } from './secret-admission.ts'

const version = 'v1beta2'
const pathOf = (verb: 'validate' | 'mutate', kind: string): string =>
  `/${verb}-infrastructure-cluster-x-k8s-io-${version}-${kind.toLowerCase()}`
const secretPath = '/validate-aws-credentials'
const kinds = Object.keys(identityResources) as IdentityKind[]

/** Routes for a webhook server: what identities and clusters may say. */
export const identityWebhooks = (options: IdentityAdmissionOptions): Record<string, Route> => ({
  ...Object.fromEntries(
    kinds.map((kind) => [pathOf('validate', kind), validating<Identity>(validateIdentity(kind, options))]),
  ),
  [pathOf('mutate', 'AWSCluster')]: mutating<AWSCluster>(defaultCluster),
  [pathOf('validate', 'AWSCluster')]: validating<AWSCluster>(validateCluster(options.records)),
  [secretPath]: validating<Secret>(validateSecret),
})

/** What tells the API server to ask us. Apply these when the server that is named answers: they refuse all writes before. */
export const identityWebhookConfigurations = (where: WebhookServerAddress): WebhookConfiguration[] => {
  const clusters = { group: group.infrastructure, version, resources: ['awsclusters'] }
  return configurationsOf('lanyard-aws-identities', {
    mutating: [guarding(where, { name: 'awsclusters.default', path: pathOf('mutate', 'AWSCluster'), ...clusters })],
    validating: [
      guarding(where, { name: 'awsclusters.validate', path: pathOf('validate', 'AWSCluster'), ...clusters }),
      ...kinds.map((kind) => guardingIdentity(where, kind)),
      guardingSecrets(where),
    ],
  })
}

/** Deleting is asked about too: somebody may depend on it. */
const guardingIdentity = (where: WebhookServerAddress, kind: IdentityKind): Webhook => {
  const { plural } = identityResources[kind]
  const of = {
    name: `${plural}.validate`,
    path: pathOf('validate', kind),
    group: group.infrastructure,
    version,
    resources: [plural],
  }
  const webhook = guarding(where, of)
  return { ...webhook, rules: webhook.rules!.map((rule) => ({ ...rule, operations: [...rule.operations, 'DELETE'] })) }
}

/** Only those whose type is ours leave the API server: no other Secret is shown to anybody. */
const guardingSecrets = (where: WebhookServerAddress): Webhook => ({
  ...guarding(where, { name: 'secrets', path: secretPath, group: '', version: 'v1', resources: ['secrets'] }),
  name: `aws-credentials.${group.infrastructure}`,
  matchConditions: [{ name: 'is-aws-credentials', expression: `object.type.startsWith('${secretTypePrefix}')` }],
})
