import type { AddOnDeploymentConfig, ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../api/index.ts'
import type { PolicyRule, RoleRef, Unstructured } from '../../kube/index.ts'
import type { KeyPair } from '../../runtime/pki/index.ts'
import { isAddOnName } from '../contract.ts'

/** What an add-on's manifests are made for. */
export interface AddOnContext {
  readonly cluster: ManagedCluster
  readonly addOn: ManagedClusterAddOn
  /** Where its agent lives on the managed cluster, and where its secrets are. */
  readonly installNamespace: string
  /** The AddOnDeploymentConfig that counts for it; empty when there is none. */
  readonly config: DeploymentConfig
  /** Its `customizedVariables` by name. */
  readonly variables: Readonly<Record<string, string>>
}

export type DeploymentConfig = NonNullable<AddOnDeploymentConfig['spec']>

/** An object for the managed cluster. */
export type Manifest = Unstructured

/** How long, whose, and by which authority. */
export interface SigningAuthority {
  /** Read anew for each certificate, so that a rotated authority is used at once. */
  load(signal: AbortSignal): Promise<KeyPair>
  /** For messages: a person must find it. */
  readonly describedAs: string
}

/** What a certificate says besides the key. */
export interface CertificateSubject {
  readonly user: string
  readonly groups?: readonly string[] | undefined
  readonly organizationUnits?: readonly string[] | undefined
}

/** A credential that the add-on's agent needs. */
export type RegistrationRequest =
  | { readonly type: 'kubeClient' }
  | {
      readonly type: 'customSigner'
      readonly signerName: string
      /** The only subject that is signed; without it, the add-on's own user on its cluster. */
      readonly subject?: ((cluster: string) => CertificateSubject) | undefined
      /** Without it somebody else approves and signs. */
      readonly authority?: SigningAuthority | undefined
      /** At most; a day unless told. */
      readonly validForMs?: number | undefined
    }

/** What the agent may do on the hub, bound to the subject that its `kubeClient` credential has. */
export type Permission =
  /** In the namespace of its cluster: a Role of these rules. */
  | { readonly in: 'cluster'; readonly rules: readonly PolicyRule[] }
  /** In the namespace of its cluster: a role that exists. */
  | { readonly in: 'cluster'; readonly roleRef: Omit<RoleRef, 'apiGroup'> }
  /** In one namespace that all clusters share: think of what one cluster can then see of another. */
  | { readonly in: 'namespace'; readonly namespace: string; readonly roleRef: Omit<RoleRef, 'apiGroup'> }
  /** Everywhere on the hub. */
  | { readonly in: 'hub'; readonly clusterRole: string }

/** `lease`: the agent renews its lease. `work`: its manifests are there. `workload`: its Deployments and DaemonSets have pods that are ready. */
export type Health = 'lease' | 'work' | 'workload'

/** An add-on: what is deployed, who it is on the hub, and what it may do there. */
export interface AddOn {
  readonly name: string
  /** Objects for one managed cluster. Those with the annotation `addon.open-cluster-management.io/addon-pre-delete` run when it goes. */
  manifests(context: AddOnContext): readonly Manifest[] | Promise<readonly Manifest[]>
  readonly registrations: readonly RegistrationRequest[]
  readonly permissions: readonly Permission[]
  readonly health: Health
  /** How manifests are kept and reported on the managed cluster. */
  readonly manifestConfigs?: NonNullable<ManifestWork['spec']['manifestConfigs']> | undefined
  /** Further settings of its ManifestWorks. */
  readonly work?: Pick<ManifestWork['spec'], 'deleteOption' | 'executor'> | undefined
  readonly installNamespace?: string | undefined
}

type Optional = 'registrations' | 'permissions' | 'health'

/** An add-on with what it leaves out. Throws an error that names what cannot work. */
export const defineAddOn = (definition: Omit<AddOn, Optional> & Partial<Pick<AddOn, Optional>>): AddOn => {
  const addOn: AddOn = { registrations: [], permissions: [], health: 'lease', ...definition }
  const fault = definitionFault(addOn)
  if (fault) throw new RangeError(`add-on ${JSON.stringify(addOn.name)}: ${fault}`)
  return addOn
}

/** Why a definition cannot work, in words for its author. */
export const definitionFault = ({ name, registrations, permissions }: AddOn): string | undefined => {
  if (!isAddOnName(name))
    return 'its name must have 1 to 63 characters: small letters, digits and dashes, and begin and end with no dash'
  const kubeClients = registrations.filter(({ type }) => type === 'kubeClient').length
  if (kubeClients > 1)
    return `it asks for ${kubeClients} kubeClient credentials, and there is one secret for them: ask for one, and bind all permissions to it`
  const signers = registrations.flatMap((one) => (one.type === 'customSigner' ? [one.signerName] : []))
  const twice = signers.find((one, index) => signers.indexOf(one) !== index)
  if (twice) return `it asks for two certificates of signer ${twice}, and there is one secret for them: ask for one`
  if (permissions.length > 0 && kubeClients === 0)
    return 'it has permissions on the hub and no kubeClient credential to use them with: add { type: "kubeClient" }'
  return undefined
}
