import { code, GrpcError } from '../../../../events/index.ts'
import { mayAccess, type Api, type ResourceAttributes } from '../../../../kube/index.ts'
import type { Clock } from '../../../../runtime/index.ts'
import type { Identity } from './identity.ts'
import { Remembered } from './remembered.ts'

/** How long the API server's word counts. What it said about a cluster is also forgotten when that cluster's RBAC changes. */
const allowedMs = 60_000
const refusedMs = 5_000
const answersPerCluster = 200
const mostClusters = 50_000

/** What somebody wants to do, in the words of RBAC, and to which cluster's objects. */
export interface Wish extends ResourceAttributes {
  cluster: string
}

/** Asks the API server whether the caller may do something: the same question that it answers for its own callers. */
export class Authorization {
  readonly #client: Pick<Api, 'of'>
  readonly #clock: Clock
  /** By cluster, so that all about one is quickly forgotten. */
  readonly #answers = new Map<string, Remembered<boolean>>()

  constructor(client: Pick<Api, 'of'>, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  /** Throws when the caller may not. A credential of one cluster never reaches another's objects, whatever RBAC says. */
  async demand(who: Identity, wish: Wish): Promise<void> {
    if (!(await this.allows(who, wish))) throw forbidden(who, wish)
  }

  async allows(who: Identity, { cluster, ...attributes }: Wish): Promise<boolean> {
    if (who.cluster !== undefined && who.cluster !== cluster) return false
    const { username, uid, groups, extra } = who
    const asked = { username, groups, ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) }
    return this.#about(cluster).get(JSON.stringify([asked, attributes]), async () => {
      const value = await mayAccess(this.#client, asked, attributes)
      return { value, forMs: value ? allowedMs : refusedMs }
    })
  }

  /** Forgets what was said about one cluster's objects, or everything. */
  forget(cluster?: string): void {
    if (cluster === undefined) this.#answers.clear()
    else this.#answers.delete(cluster)
  }

  #about(cluster: string): Remembered<boolean> {
    let answers = this.#answers.get(cluster)
    if (!answers) {
      answers = new Remembered({ clock: this.#clock, most: answersPerCluster })
      this.#answers.set(cluster, answers)
      // A bootstrap user may name clusters that do not exist, as many as it likes.
      if (this.#answers.size > mostClusters) this.#answers.delete(this.#answers.keys().next().value!)
    }
    return answers
  }
}

/** In the words that an API server uses, so that agents treat it alike. */
export const forbidden = (who: Identity, { cluster, verb, group, resource, subresource, name }: Wish): GrpcError => {
  const kind = `${resource}${subresource ? `/${subresource}` : ''}${group ? `.${group}` : ''}`
  const message =
    who.cluster !== undefined && who.cluster !== cluster
      ? `${who.username} belongs to cluster ${who.cluster}, and asks for ${kind} of cluster ${JSON.stringify(cluster.slice(0, 63))}`
      : `user ${JSON.stringify(who.username)} cannot ${verb} ${kind}${name ? ` ${JSON.stringify(name.slice(0, 253))}` : ''} of cluster ${JSON.stringify(cluster.slice(0, 63))}`
  return refusal('Forbidden', 403, message)
}

/** A refusal that reaches the agent as an error of the Kubernetes API. */
export const refusal = (reason: string, status: number, message: string): GrpcError =>
  new GrpcError(status === 403 ? code.permissionDenied : code.failedPrecondition, message, {
    status: { status: 'Failure', reason, message, code: status },
  })
