/** A program for pods of tests: it serves what it was given on the pod's address, and does what it is told. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { clientFor, inCluster } from '../../src/kube/index.ts'

const { POD_IP = '127.0.0.1', STUBBORN, LEAVES } = process.env
const say = (text: string): boolean => process.stdout.write(`${text}\n`)
let ready = process.env['READY'] !== 'no'

const answers: Record<string, (query: URLSearchParams) => unknown> = {
  '/given': () => ({
    args: process.argv.slice(2),
    env: process.env,
    cwd: process.cwd(),
    started: performance.timeOrigin,
  }),
  '/file': (query) => readFileSync(query.get('path')!, 'utf8'),
  '/ready': () => (ready ? 'yes' : undefined),
  '/become-ready': () => (ready = true),
  '/exit': (query) => setImmediate(() => process.exit(Number(query.get('code')))) && 'bye',
  '/who': async () => {
    const client = clientFor(await inCluster({ env: process.env }), { userAgent: 'witness' })
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    try {
      return await client.json({ method: 'POST', path, body })
    } finally {
      client.close()
    }
  },
}

process.on('SIGTERM', () => {
  say('SIGTERM')
  if (STUBBORN) return
  if (LEAVES) writeFileSync(LEAVES, String(Date.now()))
  process.exit(0)
})
createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url!, 'http://pod')
  const send = async (): Promise<void> => {
    const answer = await answers[pathname]?.(searchParams)
    response.writeHead(answer === undefined ? 503 : 200).end(JSON.stringify(answer ?? null))
  }
  send().catch((error: unknown) => response.writeHead(500).end(JSON.stringify(String(error))))
}).listen(8000, POD_IP, () => say(`serving on ${POD_IP}`))
