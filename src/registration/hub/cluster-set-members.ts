import { label, type ManagedCluster, type ManagedClusterSet } from '../../api/index.ts'
import { matchesSelector } from '../../kube/index.ts'

type Labels = ManagedCluster['metadata']['labels']

/**
 * Which clusters are in which set, kept up to date change by change. A cluster whose labels stay as they are costs nothing;
 * one whose labels change is compared with the selectors of the sets that have one.
 */
export class ClusterSetMembers {
  readonly #labels = new Map<string, Labels>()
  /** Clusters by the value of the label that puts them in one set. */
  readonly #exclusive = new Map<string, Set<string>>()
  /** The sets that select by labels. */
  readonly #selecting = new Map<string, { fits: (labels: Labels) => boolean; members: Set<string> }>()

  countIn(set: string): number {
    return (this.#selecting.get(set)?.members ?? this.#exclusive.get(set))?.size ?? 0
  }

  /** The sets that gained or lost the cluster. */
  putCluster(name: string, labels: Labels = {}): string[] {
    const before = this.#labels.get(name)
    if (before === labels) return []
    this.#labels.set(name, labels)
    return this.#move(name, before?.[label.clusterSet], labels[label.clusterSet], (fits) => fits(labels))
  }

  removeCluster(name: string): string[] {
    const before = this.#labels.get(name)
    this.#labels.delete(name)
    return this.#move(name, before?.[label.clusterSet], undefined, () => false)
  }

  putSet(set: ManagedClusterSet): void {
    const name = set.metadata.name!
    const selector = set.spec?.clusterSelector
    if (selector?.selectorType !== 'LabelSelector') return this.removeSet(name)
    const fits = (labels: Labels): boolean => matchesSelector(selector.labelSelector, labels)
    const members = new Set([...this.#labels].filter(([, labels]) => fits(labels)).map(([cluster]) => cluster))
    this.#selecting.set(name, { fits, members })
  }

  removeSet(name: string): void {
    this.#selecting.delete(name)
  }

  #move(
    cluster: string,
    from: string | undefined,
    to: string | undefined,
    belongs: (fits: (labels: Labels) => boolean) => boolean,
  ): string[] {
    const changed: string[] = []
    if (from !== to) {
      if (from !== undefined) this.#leave(cluster, from)
      if (to !== undefined) this.#enter(cluster, to)
      changed.push(...[from, to].filter((set) => set !== undefined))
    }
    for (const [set, { fits, members }] of this.#selecting) {
      const is = belongs(fits)
      if (is === members.has(cluster)) continue
      if (is) members.add(cluster)
      else members.delete(cluster)
      changed.push(set)
    }
    return changed
  }

  #enter(cluster: string, set: string): void {
    const members = this.#exclusive.get(set)
    if (members) members.add(cluster)
    else this.#exclusive.set(set, new Set([cluster]))
  }

  #leave(cluster: string, set: string): void {
    const members = this.#exclusive.get(set)
    members?.delete(cluster)
    if (members?.size === 0) this.#exclusive.delete(set)
  }
}
