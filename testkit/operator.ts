import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installCrds } from '../src/api/index.ts'
import {
  KindMapper,
  kubeconfigText,
  ServiceAccount,
  type CustomResourceDefinition,
  type KubeObject,
} from '../src/kube/index.ts'
import { Component } from './component.ts'
import type { ControlPlane } from './control-plane.ts'
import { freePort } from './ports.ts'
import { programPath } from './program.ts'

/** Applies manifests in their order, as `kubectl apply` would. */
export const applyManifests = async (plane: ControlPlane, objects: readonly KubeObject[]): Promise<void> => {
  const client = plane.client()
  const definitions = objects.filter(({ kind }) => kind === 'CustomResourceDefinition') as CustomResourceDefinition[]
  await installCrds(client, definitions, { fieldManager: 'testkit' })
  const kinds = new KindMapper(client)
  for (const object of objects)
    await client.of(await kinds.of(object)).apply(object as never, { fieldManager: 'testkit', force: true })
}

/** A kubeconfig with a token of a service account: what a pod that runs as it may do. */
export const kubeconfigOfAccount = async (plane: ControlPlane, namespace: string, name: string): Promise<string> => {
  const { status } = await plane
    .client()
    .of(ServiceAccount, namespace)
    .subresource<{ status: { token: string } }>(name, 'token', {
      method: 'POST',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 7200 } },
    })
  const path = join(plane.folder, `account-${namespace}-${name}.kubeconfig`)
  const text = await kubeconfigText({ cluster: 'c', server: plane.server, ca: plane.ca, user: { token: status.token } })
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

/** `lanyard operator` for one kind, as the account that the installation gives it, until the plane stops. */
export const startOperator = async (
  plane: ControlPlane,
  kind: 'ClusterManager' | 'Klusterlet',
  { args = [] }: { args?: readonly string[] } = {},
): Promise<Component> => {
  const account = kind === 'ClusterManager' ? 'cluster-manager' : 'klusterlet'
  const port = await freePort()
  const operator = new Component({
    name: `operator-${account}`,
    binary: programPath('lanyard'),
    args: [
      'operator',
      `--kind=${kind}`,
      `--kubeconfig=${await kubeconfigOfAccount(plane, 'open-cluster-management', account)}`,
      `--health-port=${port}`,
      ...args,
    ],
    folder: plane.folder,
    ready: async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok,
  })
  await operator.start()
  return operator
}
