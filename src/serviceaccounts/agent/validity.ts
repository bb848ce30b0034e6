const unitSeconds: Readonly<Record<string, number>> = {
  h: 3600,
  m: 60,
  s: 1,
  ms: 1e-3,
  us: 1e-6,
  µs: 1e-6,
  ns: 1e-9,
}

/** Whole seconds of a Go duration such as `4320h0m0s`; undefined when it is none. The API server takes whole seconds only. */
export const validitySeconds = (text: string): number | undefined => {
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)]
  return Math.floor(parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitSeconds[unit!]!, 0))
}

/** Seconds for people: `90d`, `24h`, `10m`, and what is left over in the next smaller unit. */
export const inWords = (seconds: number): string => {
  const units: [string, number][] = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ]
  const words = units.flatMap(([unit, size], i) => {
    const rest = i === 0 ? seconds : seconds % units[i - 1]![1]
    const count = Math.floor(rest / size)
    return count > 0 ? [`${count}${unit}`] : []
  })
  return words.slice(0, 2).join('') || '0s'
}
