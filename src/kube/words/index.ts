// A door of its own, without imports: a command line needs it before it knows whether it will talk to Kubernetes.

/** The known name that was probably meant: the same but for case, one that holds it, or one at most a third of its letters away. */
export const closest = (name: string, known: readonly string[]): string | undefined => {
  const lower = name.toLowerCase()
  const ranked = known
    .map((one) => ({ one, far: one.toLowerCase().includes(lower) ? 0 : distance(lower, one.toLowerCase()) }))
    .filter(({ far }) => far <= Math.max(1, name.length / 3))
    .sort((a, b) => a.far - b.far || a.one.length - b.one.length)
  return ranked[0]?.one
}

// How many letters to insert, remove, replace or swap with their neighbour.
const distance = (a: string, b: string): number => {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i += 1) {
    rows.push([i])
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      rows[i]?.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped))
    }
  }
  return at(a.length, b.length)
}
