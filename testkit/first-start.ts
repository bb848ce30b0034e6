import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { json } from 'node:stream/consumers'
import { cache, kubernetesVersion } from './paths.ts'

/**
 * What an API server writes when it starts for the first time: roles, priorities, APIs. It is the same each time and a third of the
 * work of a start, of which a run of the tests has more than a hundred. So it is kept, and put into the etcd of the next one, which
 * looks it through as after any restart. What says which cluster it is (namespaces with their uids, certificates, addresses) is made
 * anew by each.
 */
const kept = [
  'clusterrolebindings',
  'clusterroles',
  'flowschemas',
  'priorityclasses',
  'prioritylevelconfigurations',
  'rolebindings',
  'roles',
].map((kind) => `/registry/${kind}/`)

interface Entry {
  key: string
  value: string
}

const fileOf = (): string => join(cache(), `control-plane-${kubernetesVersion()}`, 'first-start.json')

/** Puts what an earlier first start has written into an empty etcd. */
export const plantFirstStart = async (etcdSocket: string): Promise<void> => {
  if (!existsSync(fileOf())) return
  const entries = JSON.parse(readFileSync(fileOf(), 'utf8')) as Entry[]
  // etcd takes no more than 128 writes at once
  for (let at = 0; at < entries.length; at += 100)
    await ask(etcdSocket, 'txn', { success: entries.slice(at, at + 100).map((entry) => ({ request_put: entry })) })
}

/** Keeps what a first start has written, unless that is kept already. To be called before anybody else has written anything. */
export const keepFirstStart = async (etcdSocket: string): Promise<void> => {
  if (existsSync(fileOf())) return
  const { kvs = [] } = (await ask(etcdSocket, 'range', {
    key: encode('/registry/'),
    range_end: encode('/registry0'),
  })) as {
    kvs?: Entry[]
  }
  const entries = kvs
    .map(({ key, value }) => ({ key, value }))
    .filter(({ key }) => kept.some((prefix) => Buffer.from(key, 'base64').toString().startsWith(prefix)))
  const file = fileOf()
  mkdirSync(dirname(file), { recursive: true })
  // Several processes may do this at the same time; each file is whole.
  const own = `${file}.${process.pid}`
  writeFileSync(own, JSON.stringify(entries))
  renameSync(own, file)
}

const encode = (text: string): string => Buffer.from(text).toString('base64')

/** The JSON form of etcd's API. */
const ask = async (socketPath: string, call: 'txn' | 'range', body: unknown): Promise<unknown> => {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const sent = request({ socketPath, path: `/v3/kv/${call}`, method: 'POST' }, (response) => {
    json(response).then((answer) => {
      if (response.statusCode === 200) resolve(answer)
      else reject(new Error(`etcd answered ${response.statusCode} to ${call}: ${JSON.stringify(answer)}`))
    }, reject)
  })
  sent.once('error', reject)
  sent.end(JSON.stringify(body))
  return promise
}
