/** How an add-on's credential is kept, by driver. A new one is a folder and a line here. */
import type { AddOnDriver } from '../contract.ts'
import { csrKeeper } from './csr/index.ts'
import type { Keeper, KeeperContext } from './driver.ts'
import { tokenKeeper } from './token/index.ts'

export type * from './driver.ts'
export { patienceMs } from './driver.ts'
export { doubtfulLifetime, lifetimeOf, readyAccount } from './token/index.ts'

export const keepers: Readonly<Record<AddOnDriver, (context: KeeperContext) => Keeper>> = {
  csr: csrKeeper,
  token: tokenKeeper,
}
