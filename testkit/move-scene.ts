import { allowing } from './aws-account.ts'
import { createCluster, mayBuild } from './aws-network.ts'
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
} from '../src/kube/index.ts'

/** Kinds of other providers, as far as a move looks at them: anything may be in them. */
const foreign = (group: string, kind: string, plural: string, versions: string[]) => {
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const crd: CustomResourceDefinition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: 'Namespaced',
      versions: versions.map((name, at) => ({ name, served: true, storage: at === 0, schema: { openAPIV3Schema } })),
    },
  }
  return { crd, kind: resource({ group, version: versions[0]!, kind, plural, namespaced: true }) }
}

export const machineTemplates = foreign(
  'infrastructure.cluster.x-k8s.io',
  'AWSMachineTemplate',
  'awsmachinetemplates',
  ['v1beta2'],
)
export const machineDeployments = foreign('cluster.x-k8s.io', 'MachineDeployment', 'machinedeployments', ['v1beta1'])

/** Another provider's kinds on a management cluster. */
export const installForeign = (client: Client): Promise<void> =>
  installCrds(client, [machineTemplates.crd, machineDeployments.crd])

/** `clusterctl move`, as a person types it. */
export const clusterctl = (
  words: readonly string[],
  from: Pick<ControlPlane, 'kubeconfig'>,
  to?: Pick<ControlPlane, 'kubeconfig'>,
  signal?: AbortSignal,
): Promise<CliResult> =>
  runCli(['move', ...words, '--kubeconfig', from.kubeconfig, ...(to ? ['--to-kubeconfig', to.kubeconfig] : [])], {
    program: 'clusterctl',
    ...(signal ? { signal } : {}),
  })

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
  const host = 'kubernetes.default.svc.cluster.local'
  await account(id).iam('CreateOpenIDConnectProvider', {
    Url: `https://${host}`,
    ClientIDList: ['sts.amazonaws.com'],
    ThumbprintList: ['a'.repeat(40)],
  })
  const trust = allowing({
    Principal: { Federated: `arn:aws:iam::${id}:oidc-provider/${host}` },
    Action: 'sts:AssumeRoleWithWebIdentity',
    Condition: { StringEquals: { [`${host}:sub`]: `system:serviceaccount:${space}:${name}` } },
  })
  const roleARN = await account(id).role(name, trust, { may: mayBuild })
  await createCluster(client, key, { spec: { identityRef: { kind: 'AWSServiceAccountIdentity', name } as never } })
  await client.of(AWSServiceAccountIdentity, space).create({ metadata: { namespace: space, name }, spec: { roleARN } })
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

/** A client of which every request fails from the moment on when a process would be gone: after so many writes by it and its fellows. */
export const mortal = (clients: readonly Client[], writes: number): { died: () => boolean; revive: () => void } => {
  let left = writes
  let dead = false
  const originals = clients.map((client) => client.json.bind(client))
  for (const [at, client] of clients.entries())
    client.json = async <T>(request: Parameters<Client['json']>[0]): Promise<T> => {
      if (dead) throw new Error('the process is gone')
      const answer = await originals[at]!<T>(request)
      const isWrite = request.method !== 'GET' && !request.query?.['dryRun'] && !request.path.includes('accessreviews')
      if (isWrite && --left === 0) dead = true
      if (dead) throw new Error('the process is gone')
      return answer
    }
  return {
    died: () => dead,
    revive: () => {
      for (const [at, client] of clients.entries()) client.json = originals[at] as Client['json']
    },
  }
}
