import type { Resource, Unstructured } from '../../kube/index.ts'

/** An object as it is at the source, with the kind that it was read as. */
export interface Found {
  readonly resource: Resource
  readonly object: Unstructured
}

/** One object of a move. */
export interface Item extends Found {
  /** Moved things leave the source. Identities that any namespace may use, and their Secrets, are copied and stay. */
  readonly fate: 'move' | 'copy'
  /** Things of one wave can be made at the same time: what owns them is in an earlier one. */
  readonly wave: number
  /** Nobody owns it, somebody names it: once those are gone, only a mark tells that it belonged to them. */
  readonly loose?: boolean | undefined
  /** Exported without its content, which is secret. */
  readonly withheld?: boolean | undefined
}

/** Everything that leaves a namespace together. */
export interface Bundle {
  /** The cluster that it comes from, by the uid of its namespace kube-system. */
  readonly origin: string
  readonly namespace: string
  /** Labels of the namespace: permission to use an identity may depend on them. */
  readonly labels: Readonly<Record<string, string>>
  /** Where the controller lives there: plain names of Secrets are looked for in it. */
  readonly controllerNamespace: string
  readonly items: readonly Item[]
  /** What is in the namespace and belongs to no cluster. */
  readonly left: readonly string[]
}

/** Something that stands in the way, and what to do about it. */
export interface Obstacle {
  readonly what: string
  readonly next: string
}

/** The items in the order in which they can be made; the reverse is the order in which they can go. */
export const wavesOf = <I extends Pick<Item, 'wave'>>(items: readonly I[]): I[][] => {
  const waves: I[][] = []
  for (const item of items) (waves[item.wave] ??= []).push(item)
  return waves.filter((wave) => wave !== undefined)
}

/** One spelling for one object of a kind, whatever version it was read in. */
export const idOf = (resource: Pick<Resource, 'group' | 'kind'>, namespace: string | undefined, name: string): string =>
  `${resource.kind}.${resource.group}/${namespace ?? ''}/${name}`

export const idOfFound = ({ resource, object }: Found): string =>
  idOf(resource, object.metadata.namespace, object.metadata.name!)
