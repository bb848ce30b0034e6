import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { clientFor, type Client } from '../src/kube/index.ts'
import type { KeyPair } from '../src/runtime/pki/index.ts'
import { countRequests, writeAuditPolicy, type RequestCount, type Requester } from './audit.ts'
import { Component } from './component.ts'
import { createCredentials, writeKubeconfig, type Credentials, type Identity } from './credentials.ts'
import { eventually } from './eventually.ts'
import { keepFirstStart, plantFirstStart } from './first-start.ts'
import {
  apiServerFlags,
  asArguments,
  controllerManagerFlags,
  etcdFlags,
  filesIn,
  writeEgressConfiguration,
  type Files,
  type Flags,
} from './flags.ts'
import { keptFolder, removeKeptFolder } from './keeper.ts'
import { kubectl } from './kubectl.ts'
import { controlPlaneBinary } from './paths.ts'
import { freePort, withFreePorts } from './ports.ts'
import { plainProbe, secureProbe, type Probe } from './probe.ts'

/** What a control plane can be asked for. */
export interface ControlPlaneOptions {
  /** More flags for the API server, without dashes; they win over the defaults, and `undefined` removes one. */
  apiServerFlags?: Flags
  /** Whether requests are written down, so that `requestsBy` can count them; yes unless said otherwise. */
  audit?: boolean
  /** Whether the controllers run: service accounts, certificate requests, garbage collection, namespaces; yes too. */
  controllerManager?: boolean
  runtimeConfig?: Record<string, string>
  serviceAccountIssuer?: string
}

/** Go collects garbage less often: a fifth of the CPU of a start, which tests do a hundred times, for some memory. */
const lessCollection = { GOGC: '400' }

/** Who a client is, and what it calls itself in the audit log. */
export interface ClientIdentity extends Identity {
  userAgent?: string
  /** A proxy in between. */
  server?: string
}

/** A real API server with etcd and the controllers that need no nodes, on 127.0.0.1, ready in a few seconds. */
export const startControlPlane = (options: ControlPlaneOptions = {}): Promise<ControlPlane> =>
  withFreePorts(async () => {
    const plane = new ControlPlane(options, { apiServer: await freePort(), controllerManager: await freePort() })
    try {
      await plane.start()
      return plane
    } catch (error) {
      await plane.stop()
      throw error
    }
  })

/** A running control plane; `stop` ends it and removes its folder, and so does the end of this process. */
export class ControlPlane {
  readonly folder = keptFolder('plane')
  readonly server: string
  /** The certificate that clients trust; also the caBundle for servers that use `serverCertificate`. */
  readonly ca: string
  /** Path of a kubeconfig whose user may do everything. */
  readonly kubeconfig: string
  /** Takes 7 seconds to `stop` while the API server is connected; `kill` is quick, and loses nothing either. */
  readonly etcd: Component
  readonly apiServer: Component
  /** Not running when the options left it out; `start` brings it in later. */
  readonly controllerManager: Component
  /** The client certificate that may speak for any user; see faults.ts. */
  readonly frontProxy: KeyPair
  readonly #files: Files = filesIn(this.folder)
  readonly #credentials: Credentials
  readonly #options: ControlPlaneOptions
  readonly #probe: Probe
  readonly #clients: Client[] = []
  readonly #guests: Component[] = []
  #kubeconfigs = 0

  constructor(options: ControlPlaneOptions, ports: { apiServer: number; controllerManager: number }) {
    const files = this.#files
    const credentials = createCredentials(files)
    const admin = credentials.forClient(administrator)
    const manager = credentials.forClient({ user: 'system:kube-controller-manager' })
    this.#options = options
    this.#credentials = credentials
    this.ca = credentials.ca
    this.frontProxy = credentials.frontProxy
    this.server = `https://127.0.0.1:${ports.apiServer}`
    this.#probe = secureProbe(ports.apiServer, this.ca, admin)
    this.kubeconfig = writeKubeconfig(files.adminKubeconfig, { server: this.server, ca: this.ca, client: admin })
    writeKubeconfig(files.controllerManagerKubeconfig, { server: this.server, ca: this.ca, client: manager })
    writeAuditPolicy(files.auditPolicy)
    writeEgressConfiguration(files)

    const etcdProbe = plainProbe({ socketPath: files.etcdSocket })
    const managerProbe = secureProbe(ports.controllerManager, this.ca, admin)
    const component = (name: Parameters<typeof controlPlaneBinary>[0], flags: Flags, ready: () => Promise<boolean>) =>
      new Component({
        binary: controlPlaneBinary(name),
        args: asArguments(flags),
        env: lessCollection,
        folder: this.folder,
        ready,
      })
    this.etcd = component('etcd', etcdFlags(files), async () => (await etcdProbe('/health')) === 200)
    this.apiServer = component(
      'kube-apiserver',
      apiServerFlags(files, {
        port: ports.apiServer,
        serviceAccountIssuer: options.serviceAccountIssuer ?? 'https://kubernetes.default.svc.cluster.local',
        runtimeConfig: options.runtimeConfig ?? {},
        audit: options.audit ?? true,
        extra: options.apiServerFlags ?? {},
      }),
      async () => (await this.#probe('/readyz')) === 200,
    )
    this.controllerManager = component(
      'kube-controller-manager',
      controllerManagerFlags(files, ports.controllerManager),
      async () => (await managerProbe('/healthz')) === 200 && (await this.#probe(defaultServiceAccount)) === 200,
    )
  }

  /** Starts the parts; `startControlPlane` has done it. */
  async start(): Promise<void> {
    await this.etcd.start()
    await plantFirstStart(this.#files.etcdSocket)
    await this.apiServer.start()
    // Flags of its own may have it write something else.
    if (!this.#options.apiServerFlags && !this.#options.runtimeConfig) await keepFirstStart(this.#files.etcdSocket)
    if (this.#options.controllerManager ?? true) await this.controllerManager.start()
  }

  /** A program that runs against this control plane ends with it. */
  takeAlong(guest: Component): void {
    this.#guests.push(guest)
  }

  /** Ends everything at once and removes the folder. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.close()
    await Promise.all(this.#guests.map((guest) => guest.kill()))
    await Promise.all([this.controllerManager.kill(), this.apiServer.kill(), this.etcd.kill()])
    removeKeptFolder(this.folder)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** Writes a kubeconfig with a new client certificate, and returns its path; `server` is for a proxy in between. */
  kubeconfigFor({ ttlMs, server = this.server, ...identity }: Identity & { ttlMs?: number; server?: string }): string {
    const path = join(this.folder, `user-${++this.#kubeconfigs}.kubeconfig`)
    return writeKubeconfig(path, { server, ca: this.ca, client: this.#credentials.forClient(identity, ttlMs) })
  }

  /** A client with a new certificate; an administrator unless an identity is given. Closed with the control plane. */
  client({ userAgent = 'lanyard-testkit', server = this.server, ...identity }: ClientIdentity = administrator): Client {
    const credential = { ca: this.ca, ...this.#credentials.forClient(identity) }
    const source = `${identity.user} of the control plane in ${this.folder}`
    const client = clientFor({ source, server, credentials: async () => credential }, { userAgent })
    this.#clients.push(client)
    return client
  }

  /** Where its authority is, for programs that make many certificates themselves. */
  get authorityFiles(): { cert: string; key: string } {
    return { cert: this.#files.ca, key: this.#files.caKey }
  }

  /** Where the API server looks for the cluster's network: Services and pods; see runner/network.ts. */
  get egressSocket(): string {
    return this.#files.egressSocket
  }

  /** A client certificate and its key. */
  clientCertificate(identity: Identity): KeyPair {
    return this.#credentials.forClient(identity)
  }

  /** A certificate for a server on localhost that clients and the API server of this control plane trust. */
  serverCertificate(dnsNames?: readonly string[]): KeyPair {
    return this.#credentials.forServer(dnsNames)
  }

  /** Runs kubectl, as the administrator unless another kubeconfig is given, and returns what it printed. */
  kubectl(
    args: readonly string[],
    options: { kubeconfig?: string; input?: string; env?: Record<string, string> } = {},
  ): Promise<string> {
    return kubectl(args, { kubeconfig: this.kubeconfig, folder: this.folder, ...options })
  }

  /** What clients whose user agent begins so, or one user, have asked of the API server: from its audit log. */
  async requestsBy(who: Requester, { since }: { since?: Date } = {}): Promise<RequestCount> {
    if (this.#options.audit === false) throw new Error('this control plane was started with { audit: false }')
    if (this.apiServer.running) await this.#auditLogIsCurrent()
    return countRequests(this.#files.auditLog, who, since)
  }

  /** A long answer can reach its client before its line reaches the log: waits for the line of a request sent now. */
  async #auditLogIsCurrent(): Promise<void> {
    const marker = `lanyard-testkit-marker/${randomUUID()}`
    await this.#probe('/version', marker)
    await eventually(async () => (await countRequests(this.#files.auditLog, marker)).total === 1)
  }
}

const administrator: Identity = { user: 'lanyard-testkit', groups: ['system:masters'] }
const defaultServiceAccount = '/api/v1/namespaces/default/serviceaccounts/default'
