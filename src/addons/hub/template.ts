import type { AddOnTemplate } from '../../api/index.ts'
import { decoded, Secret, type Api } from '../../kube/index.ts'
import { stalled, waiting } from '../../runtime/index.ts'
import { addOnSecretName, defaultInstallNamespace } from '../contract.ts'
import { withContainers, withEnvironment, withPods, type PodSpec } from './customize.ts'
import {
  definitionFault,
  type AddOn,
  type AddOnContext,
  type Manifest,
  type Permission,
  type RegistrationRequest,
  type SigningAuthority,
} from './definition.ts'

/** Where pods of a template find their credentials. */
const hubKubeconfig = { volume: 'hub-kubeconfig', folder: '/managed/hub-kubeconfig' } as const

/** The add-on that a template describes. Throws an error for its condition when it cannot work. */
export const fromTemplate = (template: AddOnTemplate, client: Pick<Api, 'of'>): AddOn => {
  const { addonName, agentSpec, registration = [] } = template.spec
  const registrations = registration.map((one): RegistrationRequest => {
    if (one.type === 'KubeClient') return { type: 'kubeClient' }
    const { signerName, subject, signingCA } = one.customSigner!
    return {
      type: 'customSigner',
      signerName,
      authority: authorityIn(client, signingCA),
      ...(subject?.user && {
        subject: (cluster: string) => ({
          user: substitute(subject.user!, { CLUSTER_NAME: cluster }),
          groups: subject.groups?.map((group) => substitute(group, { CLUSTER_NAME: cluster })),
          organizationUnits: subject.organizationUnit,
        }),
      }),
    }
  })
  const addOn: AddOn = {
    name: addonName,
    registrations,
    permissions: registration.flatMap(({ kubeClient }) => kubeClient?.hubPermissions ?? []).map(permissionOf),
    health: 'workload',
    manifestConfigs: agentSpec.manifestConfigs,
    work: { deleteOption: agentSpec.deleteOption, executor: agentSpec.executor },
    manifests: (context) =>
      ((agentSpec.workload?.manifests ?? []) as Manifest[]).map((manifest) => render(manifest, registrations, context)),
  }
  const fault = definitionFault(addOn)
  if (fault) throw stalled('InvalidTemplate', { message: `AddOnTemplate ${template.metadata.name}: ${fault}` })
  return addOn
}

type HubPermission = NonNullable<
  NonNullable<NonNullable<AddOnTemplate['spec']['registration']>[number]['kubeClient']>['hubPermissions']
>[number]

const permissionOf = ({ currentCluster, singleNamespace }: HubPermission): Permission =>
  singleNamespace
    ? {
        in: 'namespace',
        namespace: singleNamespace.namespace,
        roleRef: { kind: singleNamespace.roleRef.kind, name: singleNamespace.roleRef.name },
      }
    : { in: 'cluster', roleRef: { kind: 'ClusterRole', name: currentCluster!.clusterRoleName } }

/** A signing certificate in a Secret, under the names that TLS secrets have, or those of older ones. */
export const authorityIn = (client: Pick<Api, 'of'>, at: { namespace: string; name: string }): SigningAuthority => ({
  describedAs: `Secret ${at.namespace}/${at.name}`,
  load: async (signal) => {
    const data = decoded(await client.of(Secret, at.namespace).find(at.name, { signal }))
    const next = 'create it with the signing certificate and its key as tls.crt and tls.key'
    if (!data)
      throw waiting('NoAuthority', {
        afterMs: 30_000,
        message: `Secret ${at.namespace}/${at.name} does not exist`,
        next,
      })
    const [cert, key] = [data['tls.crt'] ?? data['ca.crt'], data['tls.key'] ?? data['ca.key']]
    if (!cert || !key)
      throw waiting('NoAuthority', { afterMs: 30_000, message: `Secret ${at.namespace}/${at.name} lacks a key`, next })
    return { cert, key }
  },
})

/** Values by name; what has none stays as it is, since manifests hold templates of other kinds too. */
const substitute = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replaceAll(/\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? values[name]! : whole,
  )

const everywhere = (value: unknown, values: Readonly<Record<string, string>>): unknown => {
  if (typeof value === 'string') return substitute(value, values)
  if (Array.isArray(value)) return value.map((one) => everywhere(one, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, everywhere(one, values)]))
}

const render = (
  manifest: Manifest,
  registrations: readonly RegistrationRequest[],
  { cluster, addOn, installNamespace, variables }: AddOnContext,
): Manifest => {
  const values = {
    ...variables,
    CLUSTER_NAME: cluster.metadata.name!,
    INSTALL_NAMESPACE: installNamespace,
    HUB_KUBECONFIG: `${hubKubeconfig.folder}/kubeconfig`,
  }
  const rendered = everywhere(manifest, values) as Manifest
  const { namespace } = rendered.metadata
  const moved =
    namespace === defaultInstallNamespace
      ? { ...rendered, metadata: { ...rendered.metadata, namespace: installNamespace } }
      : rendered
  const mounts = registrations.map((one) => mountOf(addOn.metadata.name!, one))
  return withPods(moved, (pods) =>
    withMounts(
      withContainers(pods, (one) => withEnvironment(one, values)),
      mounts,
    ),
  )
}

interface Mount {
  name: string
  mountPath: string
  secretName: string
}

const mountOf = (addOn: string, registration: RegistrationRequest): Mount => {
  if (registration.type === 'kubeClient')
    return {
      name: hubKubeconfig.volume,
      mountPath: hubKubeconfig.folder,
      secretName: addOnSecretName.kubeClient(addOn),
    }
  const word = registration.signerName.replaceAll(/[^a-z0-9]+/g, '-')
  return {
    name: `cert-${word}`.slice(0, 63).replace(/-+$/, ''),
    mountPath: `/managed/${registration.signerName.replaceAll('/', '-')}`,
    secretName: addOnSecretName.customSigner(addOn, registration.signerName),
  }
}

const withMounts = (pods: PodSpec, mounts: readonly Mount[]): PodSpec => {
  if (mounts.length === 0) return pods
  const volumes = mounts.map(({ name, secretName }) => ({ name, secret: { secretName } }))
  const added = mounts.map(({ name, mountPath }) => ({ name, mountPath, readOnly: true }))
  return withContainers({ ...pods, volumes: [...(pods.volumes ?? []), ...volumes] }, (container) => ({
    ...container,
    volumeMounts: [...(container.volumeMounts ?? []), ...added],
  }))
}
