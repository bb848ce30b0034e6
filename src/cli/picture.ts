import { outputFlag } from './command.ts'

/** Things and arrows between them, for people who would rather see than read. */
export interface Picture {
  readonly nodes: readonly PictureNode[]
  readonly edges: readonly PictureEdge[]
}

export interface PictureNode {
  readonly id: string
  /** May have several lines. */
  readonly label: string
  readonly shape?: 'box' | 'round' | undefined
  /** The frame that it is drawn in. */
  readonly frame?: string | undefined
  /** Something is wrong with it. */
  readonly bad?: boolean | undefined
}

export interface PictureEdge {
  readonly from: string
  readonly to: string
  readonly label?: string | undefined
  /** Not in force: drawn with dashes. */
  readonly faint?: boolean | undefined
  readonly colour?: 'green' | 'red' | undefined
}

/** For commands that can draw what they print. */
export const pictureFlag = {
  output: {
    ...outputFlag.output,
    help: 'How to print: table, json, yaml, or a picture as dot (Graphviz) or mermaid',
    choices: ['table', 'json', 'yaml', 'dot', 'mermaid'],
  },
} as const

/** The picture in the form that `-o` asks for; undefined when it asks for none. */
export const drawn = (form: string, picture: () => Picture): string | undefined => {
  if (form === 'dot') return dotText(picture())
  return form === 'mermaid' ? mermaidText(picture()) : undefined
}

const bad = '#c0392b'
const colours = { green: '#1e8449', red: bad } as const

export const dotText = ({ nodes, edges }: Picture): string => {
  const ids = idsOf(nodes)
  const line = ({ id, label, shape, bad: wrong }: PictureNode): string =>
    `${ids.get(id)} [label=${dotString(label)}${shape === 'round' ? ' shape=ellipse' : ''}${wrong ? ` color="${bad}"` : ''}]`
  const frames = framesOf(nodes).map(([frame, inside], at) =>
    [
      `  subgraph cluster_${at} {`,
      `    label=${dotString(frame)}`,
      ...inside.map((one) => `    ${line(one)}`),
      '  }',
    ].join('\n'),
  )
  const arrows = edges.map(({ from, to, label, faint, colour }) => {
    const styles = [
      ...(label ? [`label=${dotString(label)}`] : []),
      ...(faint ? ['style=dashed'] : []),
      ...(colour ? [`color="${colours[colour]}"`] : []),
    ]
    return `  ${ids.get(from)} -> ${ids.get(to)}${styles.length ? ` [${styles.join(' ')}]` : ''}`
  })
  const loose = nodes.filter(({ frame }) => frame === undefined).map((one) => `  ${line(one)}`)
  const head = [
    'digraph lanyard {',
    '  rankdir=LR',
    '  node [shape=box fontname="sans-serif"]',
    '  edge [fontname="sans-serif"]',
  ]
  return [...head, ...loose, ...frames, ...arrows, '}', ''].join('\n')
}

export const mermaidText = ({ nodes, edges }: Picture): string => {
  const ids = idsOf(nodes)
  const line = ({ id, label, shape }: PictureNode): string =>
    shape === 'round' ? `${ids.get(id)}([${mermaidString(label)}])` : `${ids.get(id)}[${mermaidString(label)}]`
  const frames = framesOf(nodes).map(([frame, inside], at) =>
    [`  subgraph f${at}[${mermaidString(frame)}]`, ...inside.map((one) => `    ${line(one)}`), '  end'].join('\n'),
  )
  const arrows = edges.map(({ from, to, label, faint }) => {
    const arrow = faint ? '-.->' : '-->'
    return `  ${ids.get(from)} ${arrow}${label ? `|${mermaidString(label)}|` : ''} ${ids.get(to)}`
  })
  const painted = edges.flatMap(({ colour }, at) => (colour ? [`  linkStyle ${at} stroke:${colours[colour]}`] : []))
  const wrong = nodes.filter((node) => node.bad).map(({ id }) => `  style ${ids.get(id)} stroke:${bad}`)
  const loose = nodes.filter(({ frame }) => frame === undefined).map((one) => `  ${line(one)}`)
  return ['flowchart LR', ...loose, ...frames, ...arrows, ...painted, ...wrong, ''].join('\n')
}

// Names of people and objects may hold anything; the ids of a drawing may not.
const idsOf = (nodes: readonly PictureNode[]): Map<string, string> => new Map(nodes.map(({ id }, at) => [id, `n${at}`]))

const framesOf = (nodes: readonly PictureNode[]): [string, PictureNode[]][] => {
  const frames = new Map<string, PictureNode[]>()
  for (const node of nodes)
    if (node.frame !== undefined) frames.set(node.frame, [...(frames.get(node.frame) ?? []), node])
  return [...frames]
}

const dotString = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`

// Mermaid has no escapes in strings, only entities, and takes what looks like HTML for it.
const mermaidString = (text: string): string =>
  `"${text.replaceAll(/[#&<>"`]/g, (char) => `#${char.codePointAt(0)};`).replaceAll('\n', '<br/>')}"`
