import { createReadStream, existsSync, writeFileSync } from 'node:fs'

/** One request that the API server answered, as its audit log tells it. */
export interface AuditEntry {
  verb: string
  user: string
  userAgent: string
  uri: string
  at: Date
  /** Undefined for requests that name no resource, such as /version. */
  resource?: string | undefined
  subresource?: string | undefined
  namespace?: string | undefined
  name?: string | undefined
  code?: number | undefined
}

/** How many requests something cost. */
export interface RequestCount {
  total: number
  /** Those that meant to change something. */
  writes: number
  byVerb: Record<string, number>
  byResource: Record<string, number>
  entries: AuditEntry[]
}

/** Whose requests are counted: by how the user agent begins, or by the exact user. */
export type Requester = string | { user: string }

/** The fields of audit.k8s.io/v1 Event that are used here. */
interface AuditEvent {
  auditID: string
  verb: string
  requestURI: string
  userAgent?: string
  requestReceivedTimestamp: string
  user: { username: string }
  objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string }
  responseStatus?: { code?: number }
}

/** Everything at level Metadata; what the API server asks itself and health checks are left out. */
export const writeAuditPolicy = (path: string): void => {
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [
      { level: 'None', users: ['system:apiserver'] },
      { level: 'None', nonResourceURLs: ['/healthz*', '/readyz*', '/livez*'] },
      { level: 'Metadata' },
    ],
  }
  writeFileSync(path, JSON.stringify(policy))
}

const writing = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])

/** A dry run is a write by its verb only, and so is a question about rights. */
const isWrite = ({ verb, uri, resource }: AuditEntry): boolean =>
  writing.has(verb) && !/[?&]dryRun=All/.test(uri) && !resource?.endsWith('reviews')

/** The requests of one kind of client. A watch is written twice, when it begins and when it ends, and counted once. */
export const countRequests = async (log: string, who: Requester, since = new Date(0)): Promise<RequestCount> => {
  const seen = new Map<string, AuditEntry>()
  const wanted = typeof who === 'string' ? who : who.user
  const mark = JSON.stringify(wanted).slice(1, -1)
  for await (const line of linesOf(log)) {
    if (!line.includes(mark)) continue // spares the parsing of what others did
    const event: AuditEvent = JSON.parse(line)
    const entry = entryOf(event)
    const theirs = typeof who === 'string' ? entry.userAgent.startsWith(wanted) : entry.user === wanted
    if (theirs && entry.at >= since) seen.set(event.auditID, entry)
  }
  const entries = [...seen.values()]
  return {
    total: entries.length,
    writes: entries.filter(isWrite).length,
    byVerb: countBy(entries, ({ verb }) => verb),
    byResource: countBy(entries, ({ resource, subresource }) => [resource, subresource].filter(Boolean).join('/')),
    entries,
  }
}

const countBy = (entries: AuditEntry[], key: (entry: AuditEntry) => string): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const entry of entries) counts[key(entry)] = (counts[key(entry)] ?? 0) + 1
  return counts
}

const entryOf = (event: AuditEvent): AuditEntry => ({
  verb: event.verb,
  user: event.user.username,
  userAgent: event.userAgent ?? '',
  uri: event.requestURI,
  at: new Date(event.requestReceivedTimestamp),
  resource: event.objectRef?.resource,
  subresource: event.objectRef?.subresource,
  namespace: event.objectRef?.namespace,
  name: event.objectRef?.name,
  code: event.responseStatus?.code,
})

/** Whole lines only: the last one may be in the middle of being written. */
async function* linesOf(log: string): AsyncGenerator<string> {
  if (!existsSync(log)) return
  let rest = ''
  for await (const chunk of createReadStream(log, 'utf8')) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
