import { allowing } from './aws-account.ts'
import { createCluster, mayBuild, roleByToken } from './aws-network.ts'
import { createKeys, roleReference, staticReference, trusting, type IdentityHub } from './identity-hub.ts'
import { runCli, type CliResult } from './run-cli.ts'
import type { ControlPlane } from './control-plane.ts'
import {
  AWSCluster,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
  Cluster,
  installCrds,
} from '../src/api/index.ts'
import {
  ConfigMap,
  resource,
  Secret,
  type Client,
  type CustomResourceDefinition,
  type KubeObject,
  type Resource,
} from '../src/kube/index.ts'

/** Kinds of other providers, as far as a move looks at them: anything may be in them. */
export const foreign = (
  group: string,
  kind: string,
  plural: string,
  versions: string[],
  { labels = {}, namespaced = true }: { labels?: Record<string, string>; namespaced?: boolean } = {},
) => {
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const crd: CustomResourceDefinition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels },
    spec: {
      group,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: versions.map((name, at) => ({ name, served: true, storage: at === 0, schema: { openAPIV3Schema } })),
    },
  }
  return { crd, kind: resource({ group, version: versions[0]!, kind, plural, namespaced }) }
}

export const machineTemplates = foreign(
  'infrastructure.cluster.x-k8s.io',
  'AWSMachineTemplate',
  'awsmachinetemplates',
  ['v1beta2'],
)
export const machineDeployments = foreign('cluster.x-k8s.io', 'MachineDeployment', 'machinedeployments', ['v1beta1'])

export const machines = foreign('cluster.x-k8s.io', 'Machine', 'machines', ['v1beta1'])
export const controlPlanes = foreign('controlplane.cluster.x-k8s.io', 'KubeadmControlPlane', 'kubeadmcontrolplanes', [
  'v1beta1',
])

/** Another provider's kinds on a management cluster. */
export const installForeign = (client: Client): Promise<void> =>
  installCrds(client, [machineTemplates.crd, machineDeployments.crd])

/** The kinds of `withControlPlane`. */
export const installControlPlanes = (client: Client): Promise<void> =>
  installCrds(client, [machines.crd, controlPlanes.crd])

/** `clusterctl move`, as a person types it. */
export const clusterctl = (
  words: readonly string[],
  from: Pick<ControlPlane, 'kubeconfig'>,
  to?: Pick<ControlPlane, 'kubeconfig'>,
  signal?: AbortSignal,
): Promise<CliResult> =>
  runCli(['move', ...words, ...sourceOf(words, from), ...(to ? ['--to-kubeconfig', to.kubeconfig] : [])], {
    program: 'clusterctl',
    ...(signal ? { signal } : {}),
  })

/** The same, by a person who interrupts it when it says that a step begins. */
export const interrupted = (
  words: readonly string[],
  from: Pick<ControlPlane, 'kubeconfig'>,
  to: Pick<ControlPlane, 'kubeconfig'>,
  step: string,
): Promise<CliResult> => {
  const person = new AbortController()
  return runCli(['move', ...words, '--kubeconfig', from.kubeconfig, '--to-kubeconfig', to.kubeconfig], {
    program: 'clusterctl',
    signal: person.signal,
    onErr: (text) => text.startsWith(step) && person.abort(),
  })
}

/** A directory takes the place of the source. */
const sourceOf = (words: readonly string[], { kubeconfig }: Pick<ControlPlane, 'kubeconfig'>): string[] =>
  words.includes('--from-directory') ? [] : ['--kubeconfig', kubeconfig]

const all = { allowedNamespaces: {} }

/** A cluster in a namespace, in this account, by an access key; the Secret is beside the controller and named without namespace. */
export const byKeys = async ({ client, account }: IdentityHub, key: string, id: string, own: string): Promise<void> => {
  const name = key.replace('/', '-')
  await createKeys(client, `${own}/${name}`, await account(id).user(name, mayBuild))
  await client.of(AWSClusterStaticIdentity).create({ metadata: { name }, spec: { ...all, secretRef: name } })
  await createCluster(client, key, { spec: { identityRef: staticReference(name) as never } })
}

/** By a role that is assumed from a role that is assumed with an access key whose Secret is named in full. */
export const byChain = async (
  { client, account }: IdentityHub,
  key: string,
  id: string,
  own: string,
): Promise<void> => {
  const name = key.replace('/', '-')
  const may = allowing({ Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: '*' })
  await createKeys(client, `${own}/${name}`, await account('220000000009').user(name, may))
  const secretRef = { namespace: own, name }
  await client.of(AWSClusterStaticIdentity).create({ metadata: { name }, spec: { ...all, secretRef } })
  const jump = await account('220000000009').role(`${name}-jump`, trusting(`arn:aws:iam::220000000009:user/${name}`), {
    may,
  })
  const roleARN = await account(id).role(name, trusting(jump), { may: mayBuild })
  const roles = client.of(AWSClusterRoleIdentity)
  const link = (to: string, roleArn: string, source: object) =>
    roles.create({ metadata: { name: to }, spec: { ...all, roleARN: roleArn, sourceIdentityRef: source as never } })
  await link(`${name}-jump`, jump, staticReference(name))
  await link(`${name}-build`, roleARN, roleReference(`${name}-jump`))
  await createCluster(client, key, { spec: { identityRef: roleReference(`${name}-build`) as never } })
}

/** By the token of a service account; both management clusters have the same issuer, as after a move of its keys. */
export const byToken = async ({ client, account }: IdentityHub, key: string, id: string): Promise<void> => {
  const [space, name] = key.split('/') as [string, string]
  const roleARN = await roleByToken(account(id), { id, role: name, space, name })
  await createCluster(client, key, { spec: { identityRef: { kind: 'AWSServiceAccountIdentity', name } as never } })
  await client.of(AWSServiceAccountIdentity, space).create({ metadata: { namespace: space, name }, spec: { roleARN } })
}

/** Takes away what a move has copied and left behind, so that the next one has to bring it again. */
export const forgetIdentities = async (client: Client, own: string): Promise<void> => {
  for (const kind of [AWSClusterRoleIdentity, AWSClusterStaticIdentity] as Resource<KubeObject>[])
    for (const { metadata } of (await client.of(kind).list({ metadataOnly: true })).items) {
      await client.of(kind).patch(metadata.name!, { merge: { metadata: { finalizers: null } } })
      await client.of(kind).delete(metadata.name!)
      await client.of(Secret, own).delete(metadata.name!)
    }
}

/** What machines of a cluster add: a deployment that the Cluster owns, the template that it names, and a Secret that nobody owns. */
export const withMachines = async (client: Client, key: string): Promise<void> => {
  const [namespace, name] = key.split('/') as [string, string]
  const { metadata } = await client.of(Cluster, namespace).get(name)
  const owner = { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', name, uid: metadata.uid! }
  const infrastructureRef = {
    apiGroup: machineTemplates.kind.group,
    kind: machineTemplates.kind.kind,
    name: `${name}-md`,
  }
  await client
    .of(machineTemplates.kind, namespace)
    .create({ metadata: { namespace, name: `${name}-md` }, spec: { template: { spec: { instanceType: 't3.large' } } } })
  await client.of(machineDeployments.kind, namespace).create({
    metadata: { namespace, name: `${name}-md`, ownerReferences: [owner], finalizers: ['example.com/machines'] },
    spec: { clusterName: name, template: { spec: { infrastructureRef } } },
  })
  await client
    .of(Secret, namespace)
    .create({ metadata: { namespace, name: `${name}-ca` }, stringData: { 'tls.key': 'the key of the cluster' } })
}

/** What a control plane of machines adds, as Cluster API leaves it: who owns whom, and the Secrets by which the cluster is reached and trusted. */
export const withControlPlane = async (client: Client, key: string, kubeconfig: string): Promise<void> => {
  const [namespace, name] = key.split('/') as [string, string]
  const clusters = client.of(Cluster, namespace)
  const owner = (apiVersion: string, kind: string, { metadata }: KubeObject) => ({
    ownerReferences: [{ apiVersion, kind, name: metadata.name!, uid: metadata.uid!, controller: true }],
  })
  const ofCluster = owner('cluster.x-k8s.io/v1beta1', 'Cluster', await clusters.get(name))
  const apiVersion = 'controlplane.cluster.x-k8s.io/v1beta1'
  const plane = await client
    .of(controlPlanes.kind, namespace)
    .create({ metadata: { namespace, name: `${name}-control-plane`, ...ofCluster }, spec: { replicas: 1 } })
  const ofPlane = owner(apiVersion, 'KubeadmControlPlane', plane)
  const controlPlaneRef = { apiVersion, kind: 'KubeadmControlPlane', name: `${name}-control-plane` }
  await clusters.patch(name, { merge: { spec: { controlPlaneRef } } })
  const labels = { 'cluster.x-k8s.io/cluster-name': name, 'cluster.x-k8s.io/control-plane': '' }
  await client
    .of(machines.kind, namespace)
    .create({ metadata: { namespace, name: `${name}-0`, labels, ...ofPlane }, spec: { clusterName: name } })
  const type = 'cluster.x-k8s.io/secret'
  const secret = (purpose: string, stringData: Record<string, string>, owned: object) =>
    client
      .of(Secret, namespace)
      .create({ metadata: { namespace, name: `${name}-${purpose}`, ...owned }, type, stringData })
  await secret('kubeconfig', { value: kubeconfig }, ofPlane)
  await secret('ca', { 'tls.key': 'the key of the cluster' }, {}) // people bring this one
  for (const purpose of ['etcd', 'sa']) await secret(purpose, { 'tls.key': `the key of ${purpose}` }, ofPlane)
  await seenByClusterApi(client, key)
}

/** In place of the controllers of Cluster API: the node of the machine is found, and the control plane is up. No move carries a status. */
export const seenByClusterApi = async (client: Client, key: string): Promise<void> => {
  const [namespace, name] = key.split('/') as [string, string]
  await client.of(machines.kind, namespace).patch(`${name}-0`, { merge: { status: { nodeRef: { name: 'node-0' } } } })
  await client
    .of(Cluster, namespace)
    .patch(
      name,
      { merge: { status: { controlPlaneReady: true, infrastructureReady: true } } },
      { subresource: 'status' },
    )
}

const kinds = [
  Cluster,
  AWSCluster,
  AWSServiceAccountIdentity,
  machineDeployments.kind,
  machineTemplates.kind,
  Secret,
  ConfigMap,
]

/** The names of what is in a namespace, by kind; what Kubernetes puts into each is not counted. */
export const contentsOfNamespace = async (client: Client, namespace: string): Promise<string[]> => {
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const { items } = await client.of<KubeObject>(kind, namespace).list({ metadataOnly: true })
      return items.map(({ metadata }) => `${kind.kind}/${metadata.name}`)
    }),
  )
  return lists
    .flat()
    .filter((name) => name !== 'ConfigMap/kube-root-ca.crt')
    .toSorted()
}

/** Calls that change something in AWS. */
export const changesIn = ({ calls }: IdentityHub['front']): string[] =>
  calls.map(({ action }) => action).filter((action) => !/^(Describe|Get|List|AssumeRole)/.test(action))
