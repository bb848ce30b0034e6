import type http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Metrics } from './metrics.ts'

// Not imported, for the reason that kube/node-http.ts gives.
const { createServer } = process.getBuiltinModule('node:http')

export interface Healthy {
  metrics: Metrics
  unhealthy(): string[]
  unready(): string[]
}

export interface HealthServer {
  address: string
  stop(): Promise<void>
}

/** Answers /healthz, /readyz and /metrics. A no names its reasons. */
export const startHealthServer = async (
  of: Healthy,
  { host = '127.0.0.1', port }: { host?: string | undefined; port: number },
): Promise<HealthServer> => {
  const verdict = (response: http.ServerResponse, problems: string[]): void => {
    response.writeHead(problems.length ? 500 : 200, { 'content-type': 'text/plain; charset=utf-8' })
    response.end(problems.length ? `${problems.join('\n')}\n` : 'ok\n')
  }
  const routes: Record<string, (response: http.ServerResponse) => void> = {
    '/healthz': (response) => verdict(response, of.unhealthy()),
    '/readyz': (response) => verdict(response, of.unready()),
    '/metrics': (response) => {
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
      response.end(of.metrics.text())
    },
  }
  const server = createServer((request, response) => {
    const route = request.method === 'GET' ? routes[request.url?.split('?')[0] ?? ''] : undefined
    if (route) route(response)
    else response.writeHead(404).end('there are /healthz, /readyz and /metrics\n')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new Error(`cannot serve health on ${host}:${port}; choose another port with --health-port`, { cause })),
    )
    server.listen(port, host, resolve)
  })
  const bound = server.address() as AddressInfo
  return {
    address: `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
