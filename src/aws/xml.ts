/** An element of an answer of AWS: text, or children by name in their order. AWS uses attributes for namespaces only. */
export interface XmlElement {
  name: string
  text: string
  children: XmlElement[]
}

const token = /<(\/?)([\w:.-]+)[^<>]*?(\/?)>|<[?!][^<>]*>|([^<]+)/g

/** Reads what AWS answers. Not a reader for all XML: no entities of its own, no CDATA. */
export const parseXml = (text: string): XmlElement => {
  const root: XmlElement = { name: '', text: '', children: [] }
  const open = [root]
  let end = 0
  for (const match of text.matchAll(token)) {
    if (match.index !== end) break
    end = match.index + match[0].length
    const [, closing, name, empty, content] = match
    const current = open.at(-1)!
    if (content !== undefined) current.text += unescaped(content)
    else if (name === undefined) continue
    else if (closing) {
      if (open.length === 1 || current.name !== name) throw new SyntaxError(`unexpected </${name}>`)
      open.pop()
    } else {
      const child: XmlElement = { name, text: '', children: [] }
      current.children.push(child)
      if (!empty) open.push(child)
    }
  }
  if (end !== text.length || open.length !== 1 || root.children.length !== 1)
    throw new SyntaxError('not an XML document')
  return root.children[0]!
}

const entities: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

const unescaped = (text: string): string =>
  text.replaceAll(
    /&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(\w+));/g,
    (whole, hex?: string, decimal?: string, name?: string) => {
      if (name !== undefined) return entities[name] ?? whole
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole
    },
  )

/** The element at a path of names below this one; undefined when there is none. */
export const at = (element: XmlElement, ...path: string[]): XmlElement | undefined =>
  path.reduce<XmlElement | undefined>((here, name) => here?.children.find((child) => child.name === name), element)

/** The text at a path. */
export const textAt = (element: XmlElement, ...path: string[]): string | undefined => at(element, ...path)?.text

/** The entries of a list: what is inside its `member`s, or EC2's `item`s. */
export const listAt = (element: XmlElement, ...path: string[]): XmlElement[] =>
  (at(element, ...path)?.children ?? []).filter(({ name }) => name === 'member' || name === 'item')
