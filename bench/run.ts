/** Runs the benchmarks, all or the named one, and prints one JSON line for each case. Exit code 1: a target is missed. */
import { accept } from './accept.ts'
import { addons } from './addons.ts'
import { cli } from './cli.ts'
import { client } from './client.ts'
import { drift } from './drift.ts'
import { grpc } from './grpc.ts'
import { fleet } from './hollow-fleet.ts'
import { idle } from './idle.ts'
import { identities } from './identities.ts'
import { infrastructure } from './infrastructure.ts'
import { informer } from './informer.ts'
import { irsa } from './irsa.ts'
import { join } from './join.ts'
import type { Bench } from './measure.ts'
import { move } from './move.ts'
import { permissions } from './permissions.ts'
import { serviceaccounts } from './serviceaccounts.ts'

const benches: Record<string, Bench> = {
  cli,
  client,
  idle,
  informer,
  accept,
  join,
  irsa,
  drift,
  permissions,
  fleet,
  addons,
  grpc,
  identities,
  infrastructure,
  move,
  serviceaccounts,
}

const [name] = process.argv.slice(2)
if (name !== undefined && !benches[name]) {
  console.error(`there is no benchmark "${name}"; there are ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
let ok = true
for (const bench of name === undefined ? Object.values(benches) : [benches[name]!]) {
  await bench((line) => {
    ok &&= line.ok
    console.log(JSON.stringify(line))
  })
}
process.exitCode = ok ? 0 : 1
