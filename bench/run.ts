/** Runs the benchmarks, all or the named one, and prints one JSON line for each case. Exit code 1: a target is missed. */
import { client } from './client.ts'
import { idle } from './idle.ts'
import { informer } from './informer.ts'
import type { Bench } from './measure.ts'

const benches: Record<string, Bench> = { client, idle, informer }

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
