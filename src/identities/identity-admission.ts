import { isDeepStrictEqual } from 'node:util'
import type { AWSClusterRoleIdentity, AWSClusterStaticIdentity, AWSServiceAccountIdentity } from '../api/index.ts'
import { Secret, type Api } from '../kube/index.ts'
import type { Cause, Denial, Validate, Warned } from '../runtime/webhook/index.ts'
import { secretFaults } from './access-keys.ts'
import { allowedFaults } from './selector-faults.ts'
import { secretOf } from './chain.ts'
import { sourceFaults } from './source-faults.ts'
import { annotation, singleton, type Identity, type IdentityKind } from './contract.ts'
import { keyOfIdentity } from './identity.ts'
import { namesOf, rightfulUsers, type Records } from './records.ts'
import { roleFaults, roleWarnings } from './role-faults.ts'
import { identitiesOn, someOf } from './users.ts'

export interface IdentityAdmissionOptions {
  client: Pick<Api, 'of'>
  records: Records
}

/** What is wrong with an identity, and what its author should know. */
interface Findings {
  causes: Cause[]
  warnings: string[]
}

type Judge = (
  options: IdentityAdmissionOptions,
  identity: Identity,
  old: Identity | undefined,
  signal: AbortSignal,
) => Findings | Promise<Findings>

/** Judges identities of one kind. What is stored already is not judged again: only changes are. */
export const validateIdentity =
  (kind: IdentityKind, options: IdentityAdmissionOptions): Validate<Identity> =>
  async ({ operation, object: identity, oldObject: old }, { signal }) => {
    if (operation === 'DELETE') return old && deletion(kind, options, old)
    // Finalizers must come off whatever the spec says.
    if (!identity || identity.metadata.deletionTimestamp) return undefined
    if (old && isDeepStrictEqual(identity.spec, old.spec)) return undefined
    const { causes, warnings } = await judges[kind](options, identity, old, signal)
    if (causes.length === 0) return warnings.length ? { warnings } : undefined
    return { reason: 'Invalid', message: causes.map((c) => `${c.field}: ${c.message}`).join('; '), causes, warnings }
  }

const judges: Record<IdentityKind, Judge> = {
  AWSClusterControllerIdentity: (_, identity, old) => ({
    causes: [
      ...(identity.metadata.name === singleton
        ? []
        : [
            {
              field: 'metadata.name',
              message: `there is one AWSClusterControllerIdentity, and its name is ${singleton}`,
            },
          ]),
      ...(old ? [{ field: 'spec', message: 'cannot be changed; delete the identity and create it anew' }] : []),
      ...allowedFaults((identity as AWSClusterRoleIdentity).spec?.allowedNamespaces),
    ],
    warnings: [],
  }),
  AWSClusterStaticIdentity: (options, identity, old, signal) =>
    judgeStatic(options, identity as AWSClusterStaticIdentity, old as AWSClusterStaticIdentity | undefined, signal),
  AWSClusterRoleIdentity: ({ records }, identity) => {
    const role = identity as AWSClusterRoleIdentity
    const source = sourceFaults(records, role)
    return {
      causes: [...allowedFaults(role.spec.allowedNamespaces), ...roleFaults(role.spec), ...source.causes],
      warnings: [...roleWarnings(role.spec), ...source.warnings],
    }
  },
  AWSServiceAccountIdentity: ({ records }, identity) => judgeAccount(records, identity as AWSServiceAccountIdentity),
}

const judgeStatic = async (
  { client, records }: IdentityAdmissionOptions,
  identity: AWSClusterStaticIdentity,
  old: AWSClusterStaticIdentity | undefined,
  signal: AbortSignal,
): Promise<Findings> => {
  const { controllerNamespace } = records
  const causes = allowedFaults(identity.spec.allowedNamespaces)
  const field = 'spec.secretRef'
  const { namespace, name } = secretOf(identity, controllerNamespace)
  if (old) {
    const same = isDeepStrictEqual(secretOf(old, controllerNamespace), { namespace, name })
    const message = 'cannot be changed, or clusters would change their account unnoticed: create another identity'
    return { causes: same ? causes : [...causes, { field, message }], warnings: [] }
  }
  const secret = await client.of(Secret, namespace).find(name, { signal })
  if (!secret)
    return { causes, warnings: [`${field}: secret ${namespace}/${name} does not exist yet: clusters wait for it`] }
  const faults = secretFaults(secret).map(({ field: at, message }) => ({
    field,
    message: `secret ${namespace}/${name}: ${at} ${message}`,
  }))
  return { causes: [...causes, ...faults], warnings: [] }
}

const judgeAccount = (records: Records, { metadata, spec }: AWSServiceAccountIdentity): Findings => {
  const audiences = spec.audiences ?? []
  return {
    causes: [
      ...roleFaults(spec),
      ...(metadata.namespace === records.controllerNamespace
        ? [
            {
              field: 'metadata.namespace',
              message: `${metadata.namespace} is the namespace of the controller, whose own service account could be named: use another one`,
            },
          ]
        : []),
      ...(spec.audiences && audiences.length === 0
        ? [
            {
              field: 'spec.audiences',
              message:
                'is empty, which asks for a token for Kubernetes itself: leave it out, or write sts.amazonaws.com',
            },
          ]
        : []),
      ...audiences.flatMap((audience, i) =>
        isKubernetes(audience)
          ? [
              {
                field: `spec.audiences[${i}]`,
                message: `a token for ${audience} is good for the Kubernetes API, and must not be sent to AWS: write sts.amazonaws.com`,
              },
            ]
          : [],
      ),
      ...(['tags', 'transitiveTags'] as const).flatMap((name) =>
        Object.keys(spec[name] ?? {}).length
          ? [{ field: `spec.${name}`, message: 'AWS takes the tags of such a session from the token: remove it' }]
          : [],
      ),
    ],
    warnings: roleWarnings(spec),
  }
}

const isKubernetes = (audience: string): boolean =>
  /^(https:\/\/)?kubernetes(\.default(\.svc(\.cluster\.local)?)?)?$/.test(audience)

const deletion = (
  kind: IdentityKind,
  { records }: IdentityAdmissionOptions,
  old: Identity,
): Denial | Warned | undefined => {
  if (old.metadata.annotations?.[annotation.deleteInUse] === 'true') return undefined
  const key = keyOfIdentity(kind, old)
  const users = rightfulUsers(records, key)
  if (users.length > 0)
    return {
      reason: 'Forbidden',
      message: `${kind} ${old.metadata.name} is used by AWSClusters ${someOf(namesOf(users))}, which could not be reached in AWS any more: give them another identity or delete them first, or say that you mean it with annotation ${annotation.deleteInUse}=true`,
    }
  const roles = [...identitiesOn(records, key)].slice(1)
  return roles.length ? { warnings: [`no longer a source for ${someOf(roles)}`] } : undefined
}
