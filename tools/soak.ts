/** Repeats the fault tests with new seeds for as long as it is told: `soak.ts 1h [word]`. Stops at the first failure and says how to see it again. */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'

/** `90s`, `10m`, `1h30m` in milliseconds; undefined when it is none of these. */
export const durationMs = (text: string): number | undefined => {
  const parts = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text)
  if (!parts || text === '') return undefined
  const [hours = 0, minutes = 0, seconds = 0] = parts.slice(1).map((n) => Number(n ?? 0))
  return ((hours * 60 + minutes) * 60 + seconds) * 1000
}

const soak = (text: string, word: string): number => {
  const forMs = durationMs(text)
  if (!forMs) {
    console.error(`SOAK=${text} is no duration: write 90s, 10m or 1h30m`)
    return 2
  }
  const files = globSync('{src,testkit}/**/*.fault.test.ts').filter((file) => file.includes(word))
  if (files.length === 0) {
    console.error(`no fault test's path contains "${word}"`)
    return 2
  }
  const started = Date.now()
  let passed = 0
  for (; passed === 0 || Date.now() - started < forMs; passed++) {
    const { SEED: given } = process.env
    const seed = given && passed === 0 ? Number(given) : Math.floor(Math.random() * 2 ** 31)
    const minutes = ((Date.now() - started) / 60_000).toFixed(1)
    console.log(`soak: pass ${passed + 1}, SEED=${seed}, ${minutes} min of ${text}`)
    const env = { ROUNDS: 'soak', ...process.env, SEED: String(seed) }
    const flags = ['--test', '--test-concurrency=1', '--test-reporter=spec']
    const { status } = spawnSync(process.execPath, [...flags, ...files.sort()], { stdio: 'inherit', env })
    if (status !== 0) {
      console.log(`to see it again: SEED=${seed} make soak ONLY=${word || 'fault'}`)
      console.log(`${passed} passed, 1 failed`)
      return 1
    }
  }
  console.log(`${passed} passed, 0 failed`)
  return 0
}

if (import.meta.main) process.exitCode = soak(process.argv[2] ?? '10m', process.argv[3] ?? '')
