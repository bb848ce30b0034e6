import type { KubeObject } from './objects.ts'
import type { ResourceClient } from './resource-client.ts'
import type { Resource } from './resource.ts'

/** What can be done with one kind, over whatever wire. */
export type ObjectApi<T extends KubeObject> = Pick<ResourceClient<T>, keyof ResourceClient<T>>

/** Reads and writes objects of an API server: a `Client` over HTTP, or something that looks like one over another wire. */
export interface Api {
  readonly connection: { readonly server: string; readonly source: string }
  of<T extends KubeObject>(resource: Resource<T>, namespace?: string): ObjectApi<T>
  close(): void
}
