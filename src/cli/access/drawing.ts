import type { Picture, PictureNode } from '../picture.ts'
import type { Difference } from './difference.ts'
import type { FleetGrant } from './fleet.ts'
import { placeText, roleText, rulesText, subjectText, throughText } from './words.ts'

/** Who has what where, and through what: subjects, permissions, and the clusters with what is bound on them. */
export const grantsPicture = (
  grants: readonly FleetGrant[],
  notes: (grant: FleetGrant) => string = () => '',
): Picture => {
  const nodes = new Map<string, PictureNode>()
  const edges = new Map<string, Picture['edges'][number]>()
  for (const grant of grants) {
    const who = `who ${subjectText(grant)}`
    const through = `through ${throughText(grant)}`
    const what = `what ${grant.cluster} ${through} ${roleText(grant)} ${placeText(grant.place)}`
    const faint = grant.state !== 'applied'
    nodes.set(who, { id: who, label: subjectText(grant).replace(' (', '\n('), shape: 'round' })
    nodes.set(through, { id: through, label: throughText(grant).replace(' ', '\n') })
    const note = notes(grant)
    const label = [`${roleText(grant)}, ${placeText(grant.place)}`, rulesText(grant.rules), ...(note ? [note] : [])]
    nodes.set(what, { id: what, label: label.join('\n'), frame: `cluster ${grant.cluster}` })
    const draw = (from: string, to: string, more: object = {}): unknown =>
      edges.set(`${from}\n${to}`, { from, to, ...more })
    draw(who, through)
    draw(through, what, faint ? { faint, label: grant.state } : {})
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] }
}

/** The rights that differ, an arrow for each: red for what only the first side has. */
export const differencePicture = (
  differences: readonly Difference[],
  [first, second]: readonly [string, string],
): Picture => {
  const nodes = new Map<string, PictureNode>()
  const edges = differences.map((one) => {
    const frame = one.change === 'only-first' ? `only ${first}` : `only ${second}`
    const who = subjectText(one)
    const what = `${frame} ${one.right} ${placeText(one.place)}`
    nodes.set(who, { id: who, label: who, shape: 'round' })
    nodes.set(what, { id: what, label: `${one.right}\n${placeText(one.place)}`, frame })
    return { from: who, to: what, colour: one.change === 'only-first' ? ('red' as const) : ('green' as const) }
  })
  return { nodes: [...nodes.values()], edges }
}
