import { group, label, ManagedServiceAccount } from '../../api/index.ts'
import { isNotFound, type Api, type KubeObject } from '../../kube/index.ts'
import { addOnEverywhereGroup } from '../../addons/contract.ts'
import { addOnName, guard, tokenKey, tokenSecretType } from '../contract.ts'
import { fieldManager } from './hub.ts'

// Who the add-on's agents are: by the groups and users of a certificate, or as the hub's service account for its tokens.
const byTheAddOn = [
  `request.userInfo.groups.exists(g, g == '${addOnEverywhereGroup(addOnName)}'`,
  `|| (g.startsWith('system:open-cluster-management:cluster:') && g.endsWith(':addon:${addOnName}')))`,
  `|| (request.userInfo.username.startsWith('system:open-cluster-management:cluster:') && request.userInfo.username.contains(':addon:${addOnName}:agent:'))`,
  `|| (request.userInfo.username.startsWith('system:serviceaccount:') && (request.userInfo.username.endsWith(':${addOnName}-agent')`,
  `|| request.userInfo.username.endsWith(':' + request.userInfo.username.split(':')[2] + '-${addOnName}-agent')))`,
].join(' ')

/** Whether an object is a token Secret, in the words of CEL. */
const isToken = (object: 'object' | 'oldObject'): string =>
  [
    `${object}.?metadata.labels[?'${label.isManagedServiceAccount}'].orValue('') == 'true'`,
    `${object}.?metadata.ownerReferences.orValue([]).size() == 1`,
    `${object}.metadata.ownerReferences.all(o, o.kind == '${ManagedServiceAccount.kind}' && o.apiVersion.startsWith('${group.authentication}/') && o.name == request.name)`,
  ].join(' && ')

const keys = Object.values(tokenKey)
  .map((key) => `'${key}'`)
  .join(', ')

/**
 * What RBAC cannot say: with `create` and `patch` on secrets of its namespace, the agent may write token Secrets and no others.
 * The answer to a patch shows what is there, so that this also keeps it from reading others.
 */
export const guardObjects = (): KubeObject[] => {
  const metadata = { name: guard.name }
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: guard.policy.kind,
    metadata,
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations: ['CREATE', 'UPDATE'] },
        ],
      },
      matchConditions: [{ name: 'by-the-add-on', expression: byTheAddOn }],
      validations: [
        {
          expression: `oldObject == null || (${isToken('oldObject')})`,
          message: 'this Secret is not the token of a ManagedServiceAccount: the add-on may not touch it',
        },
        {
          expression: `request.name != '' && ${isToken('object')}`,
          message: `the add-on may write token Secrets only: with the label ${label.isManagedServiceAccount}=true, and owned by the ManagedServiceAccount of the same name alone`,
        },
        {
          expression: `object.?type.orValue('') == '${tokenSecretType}' && object.?data.orValue({}).all(k, k in [${keys}])`,
          message: `a token Secret is of type ${tokenSecretType} and has no other keys than ${Object.values(tokenKey).join(' and ')}`,
        },
        {
          expression: 'object.?metadata.finalizers.orValue([]).size() == 0',
          message: 'a token Secret has no finalizers: it goes with its ManagedServiceAccount',
        },
      ],
    },
  }
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: guard.binding.kind,
    metadata,
    spec: { policyName: guard.name, validationActions: ['Deny'] },
  }
  return [policy, binding]
}

const resourceOf = (object: KubeObject) => (object.kind === guard.policy.kind ? guard.policy : guard.binding)

/** Puts the rules in place; false where the API server has no such rules: then the add-on must not be given its rights. */
export const applyGuard = async (client: Api, signal: AbortSignal): Promise<boolean> => {
  try {
    for (const object of guardObjects())
      await client.of(resourceOf(object)).apply(object, { fieldManager, force: true, signal })
    return true
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}
