import type { StepResult } from './faults.ts'

/** How one cluster stands. */
export interface ClusterReport {
  name: string
  state: StepResult['state']
  steps: StepResult[]
}

/** All that doctor says; with -o json and yaml it is this. */
export interface Report {
  hub: { server: string; steps: StepResult[] } | undefined
  managed: { server: string } | undefined
  clusters: ClusterReport[]
}

/** Stuck if a step is; unknown only where nothing could be looked at. */
export const stateOf = (steps: readonly StepResult[]): StepResult['state'] => {
  if (steps.some(({ state }) => state === 'stuck')) return 'stuck'
  return steps.some(({ state }) => state === 'ok') ? 'ok' : 'unknown'
}

export const isStuck = ({ hub, clusters }: Report): boolean =>
  [...(hub?.steps ?? []), ...clusters.flatMap(({ steps }) => steps)].some(({ state }) => state === 'stuck')

const places = { hub: 'the hub', managed: 'the managed cluster' } as const

/** For people: every step of one cluster; of many clusters only what is stuck. */
export const reportText = (
  report: Report,
  { paint }: { paint: (state: StepResult['state'], text: string) => string },
): string => {
  const { hub, clusters } = report
  const brief = clusters.length > 1
  const lines: string[] = []
  if (hub) lines.push(`Hub ${hub.server}`, ...hub.steps.flatMap((step) => stepLines(step, paint)))
  for (const { name, state, steps } of clusters) {
    const shown = brief ? steps.filter((step) => step.state === 'stuck') : steps
    lines.push(
      `Cluster ${name}${brief ? `: ${paint(state, state)}` : ''}`,
      ...shown.flatMap((step) => stepLines(step, paint)),
    )
  }
  const first = [...(hub?.steps ?? []), ...clusters.flatMap(({ steps }) => steps)].find(
    ({ state }) => state === 'stuck',
  )
  lines.push('', first?.state === 'stuck' ? nextLines(first).join('\n') : conclusion(report))
  return lines.join('\n')
}

const marks = { ok: 'ok     ', stuck: 'stuck  ', unknown: '?      ' } as const

const stepLines = (result: StepResult, paint: (state: StepResult['state'], text: string) => string): string[] => {
  const mark = `  ${paint(result.state, marks[result.state])}`
  const indent = ' '.repeat(9)
  if (result.state === 'ok') return [`${mark}${result.step}`]
  if (result.state === 'unknown') return [`${mark}${result.step}: ${result.why}`]
  return [
    `${mark}${result.step}: ${result.fault}`,
    `${indent}${result.why}`,
    `${indent}on ${places[result.on]}: ${result.command}`,
  ]
}

// What is stuck later is often stuck because of what is stuck first.
const nextLines = ({ fault, on, command }: Extract<StepResult, { state: 'stuck' }>): string[] => [
  `Begin with ${fault}. For ${places[on]} run:`,
  '',
  `    ${command}`,
  '',
  'and doctor again.',
]

const conclusion = ({ hub, clusters }: Report): string => {
  const blind = clusters.some(({ steps }) => steps.some(({ state }) => state === 'unknown'))
  const what = clusters.length === 0 ? 'The hub is well; no cluster has asked to join it yet.' : 'Nothing is stuck'
  if (clusters.length === 0) return hub ? what : 'There was nothing to look at.'
  return blind ? `${what}, as far as could be looked.` : `${what}.`
}
