import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { availableParallelism, totalmem } from 'node:os'
import { isAlreadyExists, Node, type Client } from '../../src/kube/index.ts'
import { timestamp } from '../../src/runtime/index.ts'
import type { KeyPair } from '../../src/runtime/pki/index.ts'
import { kubernetesVersion } from '../paths.ts'
import { logFileOf } from './pod-life.ts'

const kubeletPort = 10_250

/**
 * 254 addresses for pods. All of 127.0.0.0/8 is this machine, so each pod listens on one of its own; the API allows no such
 * address in an EndpointSlice, so to the cluster 127.a.b.c is called 10.a.b.c, and the runner's network leads there.
 */
export class Subnet {
  readonly #prefix: string
  readonly #taken = new Set([0, 1, 255])

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** The node's own. */
  get node(): string {
    return `127.${this.#prefix}.1`
  }

  take(): string {
    const free = Array.from({ length: 254 }, (_, n) => n).find((n) => !this.#taken.has(n))
    if (free === undefined) throw new Error('a runner has room for 253 pods; delete some')
    this.#taken.add(free)
    return `127.${this.#prefix}.${free}`
  }

  release(address: string): void {
    this.#taken.delete(Number(address.split('.')[3]))
  }
}

/** How the cluster calls an address of this machine, and the way back. */
export const clusterAddress = (address: string): string => address.replace(/^127\./, '10.')
export const localAddress = (address: string): string => address.replace(/^10\./, '127.')

/** What answers the API server for `kubectl logs`; that it listens also keeps the subnet from other runners. */
export const startNodeServer = async (
  folder: string,
  certificate: KeyPair,
): Promise<{ subnet: Subnet; stop: () => void }> => {
  for (let attempt = 0; attempt < 50; attempt++) {
    const subnet = new Subnet(`${randomInt(16, 255)}.${randomInt(0, 256)}`)
    const server = createServer(certificate, (request, response) => sendLog(folder, request, response))
    server.listen({ port: kubeletPort, host: subnet.node, exclusive: true })
    const taken = await once(server, 'listening').then(
      () => false,
      () => true,
    )
    if (taken) continue
    server.unref()
    return {
      subnet,
      stop: () => {
        server.close()
        server.closeAllConnections()
      },
    }
  }
  throw new Error(`no subnet of 127.0.0.0/8 is free: 50 addresses were tried on port ${kubeletPort}`)
}

const sendLog = (folder: string, request: IncomingMessage, response: ServerResponse): void => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'https://node')
  const [, endpoint, namespace, name, container] = pathname.split('/').map(decodeURIComponent)
  if (endpoint !== 'containerLogs' || !namespace || !name || !container) {
    response.writeHead(404).end('this node answers for logs only\n')
    return
  }
  const file = logFileOf(folder, { namespace, name }, container)
  if (!existsSync(file)) response.writeHead(404).end(`there is no log of ${namespace}/${name} ${container} yet\n`)
  else response.end(lastLines(readFileSync(file, 'utf8'), Number(searchParams.get('tailLines') ?? Infinity)))
}

const lastLines = (text: string, count: number): string => {
  const lines = text.split(/(?<=\n)/)
  return lines.slice(Math.max(0, lines.length - count)).join('')
}

/** Presents this machine to the cluster as a node that is ready. */
export const presentNode = async (client: Client, name: string, address: string): Promise<void> => {
  const nodes = client.of(Node)
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' }
  await nodes.create({ metadata: { name, labels } }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
  await nodes.patch(name, { merge: { spec: { taints: null } } }) // a new node is tainted until somebody has looked at it
  const resources = { cpu: String(availableParallelism()), memory: `${Math.floor(totalmem() / 1024)}Ki`, pods: '253' }
  const now = timestamp(Date.now())
  const status = {
    capacity: resources,
    allocatable: resources,
    addresses: [{ type: 'InternalIP', address: clusterAddress(address) }],
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'RunnerReady',
        message: 'pods run as processes of this machine',
        lastHeartbeatTime: now,
        lastTransitionTime: now,
      },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
    nodeInfo: { kubeletVersion: kubernetesVersion(), operatingSystem: 'linux', architecture: process.arch },
  }
  await nodes.patch(name, { merge: { status } }, { subresource: 'status' })
}
