const block = /-----BEGIN ([A-Z0-9 ]+)-----\r?\n([A-Za-z0-9+/=\r\n]*?)\r?\n-----END \1-----[ \t]*(?:\r?\n|$)/g

/** One PEM block: what it says it is, and its bytes. */
export interface PemBlock {
  label: string
  der: Buffer
}

/** The blocks of a text that holds nothing else; undefined when it does, or when a block is not plain base64. */
export const readPem = (text: string): PemBlock[] | undefined => {
  // What Go skips in silence (text around the blocks, headers inside them) could be read differently by somebody else.
  if (text.replaceAll(block, '').trim() !== '') return undefined
  const blocks = [...text.matchAll(block)].map(([, label = '', body = '']) => ({ label, der: bytesOf(body) }))
  return blocks.every((one): one is PemBlock => one.der !== undefined) ? blocks : undefined
}

const bytesOf = (body: string): Buffer | undefined => {
  const compact = body.replaceAll(/[\r\n]/g, '')
  const der = Buffer.from(compact, 'base64')
  // Buffer skips what it cannot read; only the same text again proves that it read all of it.
  return der.length > 0 && der.toString('base64') === compact ? der : undefined
}
