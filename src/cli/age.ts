const units: [string, number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
]

/** How long ago, in the largest unit of which there are two: `90s`, `3h`, `12d`. */
export const ageOf = (time: string | undefined, now: number): string => {
  const ms = now - Date.parse(time ?? '')
  if (Number.isNaN(ms)) return ''
  const [unit, size] = units.find(([, size]) => ms >= 2 * size) ?? units.at(-1)!
  return `${Math.max(0, Math.floor(ms / size))}${unit}`
}
