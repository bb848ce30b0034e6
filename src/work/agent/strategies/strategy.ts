import type { ObjectApi, OwnerReference, Unstructured } from '../../../kube/index.ts'
import type { ManifestConfig } from '../manifest.ts'

/** What a strategy works with. */
export interface ApplyContext {
  readonly objects: ObjectApi<Unstructured>
  readonly desired: Unstructured
  /** Most likely it is not there yet, so that making it comes before looking. */
  readonly unseen: boolean
  readonly owner: { readonly reference: OwnerReference; readonly owned: boolean }
  readonly settings: NonNullable<ManifestConfig['updateStrategy']>
  /** Whether an object has the content that the server made of the manifest when it was last applied. */
  isAsApplied(present: Unstructured): boolean
  /** Throws when what is there is somebody else's, and the manifest does not take what it finds. */
  mayTake(present: Unstructured): void
  /** Throws when the work's executor may not write this. */
  mayWrite(next: Unstructured, present: Unstructured | undefined): Promise<void>
  readonly signal: AbortSignal
}

export type Change = 'created' | 'updated' | 'replaced'

/** How an object is after it was applied, and what had to be done. */
export interface Applied {
  readonly live: Unstructured
  readonly change?: Change | undefined
}

/** How an object is brought to what the work wants, and kept there. */
export type Strategy = (context: ApplyContext) => Promise<Applied>

/** Why a manifest could not be applied, in words for its condition. */
export class ApplyProblem extends Error {
  override name = 'ApplyProblem'
  readonly ignoreFields: boolean
  /** The object that is there is somebody else's. */
  readonly foreign: boolean

  constructor(message: string, options: { ignoreFields?: boolean; foreign?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.ignoreFields = options.ignoreFields ?? false
    this.foreign = options.foreign ?? false
  }
}
