/**
 * One YAML (or JSON) document as plain values, or what is wrong with it and where.
 * The parser's own messages quote the text, which may hold secrets: only its error codes and positions are passed on.
 */
export const parseYaml = async (text: string): Promise<{ value?: unknown; problem?: string }> => {
  const { LineCounter, isScalar, parseAllDocuments } = await import('yaml') // 50 ms to load: only when a document is read
  const lines = new LineCounter()
  const options = {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    merge: true,
    logLevel: 'silent',
  } as const
  try {
    const found = parseAllDocuments(text, options)
    // A trailing `---` starts another document that holds nothing.
    const documents =
      'empty' in found
        ? []
        : found.filter(({ contents, errors }, index) => {
            const nothing = contents === null || (isScalar(contents) && contents.value === null)
            return index === 0 || errors.length > 0 || !nothing
          })
    const error = documents.flatMap((document) => document.errors)[0]
    if (error) {
      const { line, col } = lines.linePos(error.pos[0])
      return {
        problem: `line ${line}, column ${col}: ${problems[error.code] ?? `it cannot be parsed (${error.code})`}`,
      }
    }
    if (documents.length > 1) return { problem: `it holds ${documents.length} documents, separated by ---` }
    return { value: documents[0]?.toJS({ maxAliasCount: 100 }) as unknown }
  } catch (error) {
    if (error instanceof ReferenceError) return { problem: 'an alias is unknown, or aliases multiply without bound' }
    return { problem: 'it is nested too deeply, or not text' }
  }
}

const problems: Partial<Record<string, string>> = {
  DUPLICATE_KEY: 'a key stands there twice',
  TAB_AS_INDENT: 'tabs cannot be used to indent',
  BAD_INDENT: 'the indentation does not fit',
  BAD_ALIAS: 'the alias cannot be used',
  NON_STRING_KEY: 'a key must be text',
  MISSING_CHAR: 'a character is missing, such as a closing quote or bracket',
}
