import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { rmSync } from 'node:fs'
import { once } from 'node:events'
import type { EndpointSlice, Service } from './kinds.ts'
import { localAddress } from './node.ts'

/** What the network knows of the cluster. */
export interface Routes {
  serviceByIP(clusterIP: string): Service | undefined
  slicesOf(service: Service): EndpointSlice[]
}

export interface Target {
  host: string
  port: number
}

/** Where a connection to an address of the cluster ends on this machine; a Service leads to its ready pods in turn. */
export const targetOf = (routes: Routes, host: string, port: number, turn = 0): Target => {
  const service = routes.serviceByIP(host)
  if (!service) return { host: localAddress(host), port }
  const { name, namespace } = service.metadata
  const wanted = service.spec.ports?.find((one) => one.port === port)
  if (!wanted) throw new Error(`Service ${namespace}/${name} has no port ${port}`)
  const targets = routes.slicesOf(service).flatMap(({ endpoints, ports }) => {
    const at = ports?.find((one) => (one.name ?? '') === (wanted.name ?? ''))?.port
    const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false)
    return at === undefined ? [] : ready.flatMap(({ addresses }) => addresses.map((address) => ({ address, at })))
  })
  const chosen = targets[turn % targets.length]
  if (!chosen) throw new Error(`no pod of Service ${namespace}/${name} is ready`)
  return { host: localAddress(chosen.address), port: chosen.at }
}

/**
 * The cluster's network as the API server sees it: an HTTP CONNECT proxy on a socket (`--egress-selector-config-file`), which
 * takes the part of kube-proxy. It passes bytes on, so TLS is between the API server and the pod.
 */
export const startNetwork = async (socketPath: string, routes: Routes): Promise<{ stop: () => void }> => {
  const sockets = new Set<Socket>()
  const held = (socket: Socket): Socket => {
    sockets.add(socket.once('close', () => sockets.delete(socket)))
    return socket.on('error', () => socket.destroy())
  }
  let turn = 0
  const server = createServer((_, response) => response.writeHead(405).end('CONNECT is all that is understood\n'))
  server.on('connect', (request, client, head) => {
    held(client as Socket)
    const refuse = (why: string): unknown => client.end(`HTTP/1.1 503 ${why.replaceAll(/[\r\n]/g, ' ')}\r\n\r\n`)
    const { hostname, port } = new URL(`tcp://${request.url}`)
    let target: Target
    try {
      target = targetOf(routes, hostname, Number(port), turn++)
    } catch (error) {
      refuse((error as Error).message)
      return
    }
    const upstream = connect(target)
    upstream.once('error', (error) => refuse(error.message))
    upstream.once('connect', () => {
      held(upstream)
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.length) upstream.write(head)
      upstream.pipe(client)
      client.pipe(upstream)
      client.once('close', () => upstream.destroy())
    })
  })
  rmSync(socketPath, { force: true }) // of a runner that was killed
  server.listen(socketPath)
  await once(server, 'listening')
  server.unref()
  return {
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
