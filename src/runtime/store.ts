import { keyOf, type KubeObject } from '../kube/index.ts'

/** Which values an object is found under. */
export type IndexBy<T> = (object: T) => readonly string[]

/** The index that every store has. */
export const byNamespace = 'namespace'

/** Objects by key and by index. They are shared and must not be changed: copy with a spread before writing. */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>()
  readonly #indexes = new Map<string, { by: IndexBy<T>; found: Map<string, Map<string, T>> }>()

  constructor(indexes: Record<string, IndexBy<T>> = {}) {
    this.addIndex(byNamespace, (object) => (object.metadata.namespace ? [object.metadata.namespace] : []))
    for (const [name, by] of Object.entries(indexes)) this.addIndex(name, by)
  }

  get size(): number {
    return this.#objects.size
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys()
  }

  list(): T[] {
    return [...this.#objects.values()]
  }

  /** The objects under one value of an index. */
  by(index: string, value: string): T[] {
    const found = this.#index(index).found.get(value)
    return found ? [...found.values()] : []
  }

  addIndex(name: string, by: IndexBy<T>): void {
    if (this.#indexes.has(name)) throw new Error(`index ${name} exists: give the new one another name`)
    this.#indexes.set(name, { by, found: new Map() })
    for (const [key, object] of this.#objects) this.#link(this.#index(name), key, object)
  }

  /** Puts the object in place of the one with its key, which is returned. */
  put(object: T): T | undefined {
    const key = keyOf(object)
    const old = this.#objects.get(key)
    for (const index of this.#indexes.values()) {
      if (old) this.#unlink(index, key, old)
      this.#link(index, key, object)
    }
    this.#objects.set(key, object)
    return old
  }

  remove(key: string): T | undefined {
    const old = this.#objects.get(key)
    if (!old) return undefined
    for (const index of this.#indexes.values()) this.#unlink(index, key, old)
    this.#objects.delete(key)
    return old
  }

  #index(name: string): { by: IndexBy<T>; found: Map<string, Map<string, T>> } {
    const index = this.#indexes.get(name)
    if (!index) throw new Error(`there is no index ${name}; there are ${[...this.#indexes.keys()].join(', ')}`)
    return index
  }

  #link(index: { by: IndexBy<T>; found: Map<string, Map<string, T>> }, key: string, object: T): void {
    for (const value of index.by(object)) {
      let found = index.found.get(value)
      if (!found) index.found.set(value, (found = new Map()))
      found.set(key, object)
    }
  }

  #unlink(index: { by: IndexBy<T>; found: Map<string, Map<string, T>> }, key: string, object: T): void {
    for (const value of index.by(object)) {
      const found = index.found.get(value)
      found?.delete(key)
      if (found?.size === 0) index.found.delete(value)
    }
  }
}
