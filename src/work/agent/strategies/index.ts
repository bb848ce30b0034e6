/** The ways in which a work can keep an object. */
import type { ManifestConfig } from '../manifest.ts'
import { createOnly } from './create-only.ts'
import { readOnly } from './read-only.ts'
import { serverSideApply } from './server-side-apply.ts'
import type { Strategy } from './strategy.ts'
import { update } from './update.ts'

export { contentOf } from './fields.ts'
export { ApplyProblem, type Applied, type ApplyContext, type Change } from './strategy.ts'

type Type = NonNullable<NonNullable<ManifestConfig['updateStrategy']>['type']>

export const strategies: Record<Type, Strategy> = {
  Update: update,
  CreateOnly: createOnly,
  ServerSideApply: serverSideApply,
  ReadOnly: readOnly,
}
