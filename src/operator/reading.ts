/** What came of reading a spec: the flags it turns into, and what cannot be done as it says. */
export interface Reading {
  readonly flags: string[]
  /** Fields that are set and have no effect here, each with why. */
  readonly ignored: string[]
  /** Why the whole object cannot be followed; nothing is changed as long as there is one. */
  readonly refused: string[]
  /** Gates that do not exist, or cannot be set as asked. */
  readonly badGates: string[]
}

export const newReading = (): Reading => ({ flags: [], ignored: [], refused: [], badGates: [] })

export interface Gate {
  feature: string
  mode?: string | undefined
}

/**
 * What can be done with a gate. `set`: the program has a flag for it. `on` and `off`: it is always so here, and asking for
 * that is fine.
 */
export type GateRule = 'set' | 'on' | 'off'

/** Reads gates by a table; answers with those that the program is to be told, as `Gate=true`. */
export const readGates = (
  gates: readonly Gate[] | undefined,
  rules: Readonly<Record<string, GateRule>>,
  bad: string[],
): string[] =>
  (gates ?? []).flatMap(({ feature, mode = 'Disable' }) => {
    const on = mode === 'Enable'
    const rule = Object.hasOwn(rules, feature) ? rules[feature] : undefined
    if (rule === 'set') return [`${feature}=${on}`]
    if (!rule) bad.push(`${feature} does not exist; there are ${Object.keys(rules).join(', ')}`)
    else if ((rule === 'on') !== on) bad.push(`${feature} is always ${rule} here`)
    return []
  })

/** A flag for a value that is there; lists become one flag with commas. */
export const flag = (name: string, value: string | number | readonly string[] | undefined): string[] => {
  if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) return []
  return [`--${name}=${Array.isArray(value) ? value.join(',') : String(value)}`]
}
