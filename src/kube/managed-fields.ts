const start = /^\{"type":"[A-Z]+","object":\{(?:"(?:apiVersion|kind)":"[^"\\]*",){0,2}"metadata":\{/

/**
 * The text of a watch event without `metadata.managedFields` of its object. They are up to half of what a server sends and
 * nobody here reads them: cutting them out before the text is parsed saves the parser and the garbage collector that half.
 * A text that is not as servers write it comes back as it is; so does everything that only looks like managedFields, such as
 * those of an object inside of a ManifestWork.
 */
export const withoutManagedFields = (event: string): string => {
  const metadata = start.exec(event)?.[0].length
  if (metadata === undefined) return event
  // Within metadata only, key by key. Its values are short; managedFields itself is the long one.
  for (let at = metadata; event.charCodeAt(at) === quote;) {
    const value = endOfString(event, at) + 1
    const end = endOfValue(event, value)
    if (end < 0) return event
    const more = event.charCodeAt(end) === comma
    if (event.startsWith('"managedFields":', at)) {
      // Of the two commas around it one has to go.
      const before = event.charCodeAt(at - 1) === comma ? at - 1 : at
      return event.slice(0, more ? at : before) + event.slice(more ? end + 1 : end)
    }
    if (!more) return event
    at = end + 1
  }
  return event
}

const quote = 34
const comma = 44
const backslash = 92

/** Behind the quote that ends the string which begins at `at`; -1 when nothing ends it. */
const endOfString = (text: string, at: number): number => {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return end + 1
  }
  return -1
}

/** Behind the value that begins at `at`: on the comma or bracket that follows it; -1 when the text ends before. */
const endOfValue = (text: string, at: number): number => {
  let depth = 0
  for (let end = at; end >= 0 && end < text.length;) {
    switch (text.charCodeAt(end)) {
      case quote:
        end = endOfString(text, end)
        continue
      case 123: // {
      case 91: // [
        depth++
        break
      case 125: // }
      case 93: // ]
        if (depth-- === 0) return end
        break
      case comma:
        if (depth === 0) return end
    }
    end++
  }
  return -1
}
