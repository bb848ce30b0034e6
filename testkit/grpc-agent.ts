import { Namespace, Secret, ServiceAccount, ConfigMap, isAlreadyExists } from '../src/kube/index.ts'
import { grpcCaConfigMap, grpcSecret } from '../src/registration/drivers/grpc/contract.ts'
import type { KeyPair } from '../src/runtime/pki/index.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { allowBootstrap, startHub, type LanyardProcess, type StartOptions } from './lanyard.ts'
import { freePort } from './ports.ts'

const hubNamespace = 'open-cluster-management-hub'
const agentNamespace = 'open-cluster-management-agent'

/** A `lanyard hub` process whose clusters reach it over gRPC alone. */
export interface GrpcHubProcess extends LanyardProcess {
  /** `host:port` of its endpoint. */
  readonly endpoint: string
}

/** `lanyard hub` with its gRPC endpoint on loopback, on the same port after each restart. */
export const startHubWithGrpc = async (
  plane: ControlPlane,
  { args = [], ...options }: StartOptions = {},
): Promise<GrpcHubProcess> => {
  const port = await freePort()
  const where = ['--grpc-host=127.0.0.1', `--grpc-port=${port}`, '--grpc-names=127.0.0.1']
  const hub = await startHub(plane, { ...options, args: ['--registration-drivers=grpc', ...where, ...args] })
  return { ...hub, endpoint: `127.0.0.1:${port}` }
}

/** What agents have to trust. */
export const endpointCa = async (hub: ControlPlane): Promise<string> => {
  const configMaps = hub.client().of(ConfigMap, hubNamespace)
  const { data } = await eventually(() => configMaps.get(grpcCaConfigMap.name), { timeoutMs: 60_000 })
  return data![grpcCaConfigMap.key]!
}

/** What signs the certificates of the endpoint's clients. */
export const endpointAuthority = async (hub: ControlPlane): Promise<KeyPair> => {
  const { data } = await hub.client().of(Secret, hubNamespace).get(grpcSecret)
  return { cert: await endpointCa(hub), key: Buffer.from(data!['ca.key']!, 'base64').toString('utf8') }
}

/** A token of the account that may ask the hub to let clusters in. */
export const bootstrapToken = async (hub: ControlPlane): Promise<string> => {
  const name = 'agent-registration-bootstrap'
  await allowBootstrap(hub, `system:serviceaccount:${hubNamespace}:${name}`)
  const accounts = hub.client().of(ServiceAccount, hubNamespace)
  await accounts.create({ metadata: { name, namespace: hubNamespace } }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
  const { status } = await accounts.subresource<{ status: { token: string } }>(name, 'token', { method: 'POST', body })
  return status.token
}

/** Puts the secret that leads to a hub's endpoint, and nowhere else, on a managed cluster. */
export const sendOverGrpc = async (
  managed: ControlPlane,
  hub: ControlPlane,
  endpoint: string,
  { namespace = agentNamespace } = {},
): Promise<void> => {
  const [ca, token] = await Promise.all([endpointCa(hub), bootstrapToken(hub)])
  const config = JSON.stringify({ url: endpoint, caData: Buffer.from(ca).toString('base64'), token })
  const client = managed.client()
  await client.of(Namespace).apply({ metadata: { name: namespace } }, { fieldManager: 'testkit', force: true })
  const metadata = { name: 'bootstrap-hub-kubeconfig', namespace }
  const secret = { metadata, stringData: { 'config.yaml': config } }
  await client.of(Secret, namespace).apply(secret, { fieldManager: 'testkit', force: true })
}
