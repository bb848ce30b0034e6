import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { SignatureV4 } from '@smithy/signature-v4'
import * as fc from 'fast-check'
import { encoded, presigned, signed } from './sigv4.ts'

/** SHA-256 as the oracle wants it. */
class Sha256 {
  readonly #hash
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', toBuffer(secret))
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(toBuffer(data))
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }
  reset(): void {}
}

const toBuffer = (data: string | ArrayBuffer | ArrayBufferView): Buffer => {
  if (typeof data === 'string') return Buffer.from(data)
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data)
}

const anything = fc.string({ unit: 'grapheme', maxLength: 12 })
const segment = fc.string({
  unit: fc.constantFrom('a', 'Z', '0', '-', '_', '~', ':', '/', ' ', '%', '+', '*', '(', 'ü', '='),
  minLength: 1,
  maxLength: 8,
})
const request = fc.record({
  method: fc.constantFrom('GET', 'POST', 'DELETE'),
  segments: fc.array(segment, { maxLength: 3 }),
  query: fc.dictionary(segment, anything, { maxKeys: 4 }),
  headers: fc.dictionary(
    fc.constantFrom('content-type', 'x-k8s-aws-id', 'accept'),
    fc.string({ unit: fc.constantFrom('a', ' ', '/', '=', ';'), maxLength: 9 }),
  ),
  body: fc.option(anything, { nil: undefined }),
  sessionToken: fc.option(fc.base64String({ minLength: 4 }), { nil: undefined }),
  time: fc.date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true }),
})

type Sample = typeof request extends fc.Arbitrary<infer T> ? T : never

const urlOf = ({ segments, query }: Sample): URL => {
  const search = Object.entries(query).map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
  return new URL(`https://eks.eu-west-1.amazonaws.com/${segments.map(encoded).join('/')}?${search.join('&')}`)
}

const credentialsOf = ({ sessionToken }: Sample) => ({
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  ...(sessionToken === undefined ? {} : { sessionToken }),
})

const oracle = (sample: Sample) =>
  new SignatureV4({
    credentials: credentialsOf(sample),
    region: 'eu-west-1',
    service: 'eks',
    sha256: Sha256,
    applyChecksum: false,
    uriEscapePath: true,
  })

const oracleRequest = (sample: Sample, method: string) => ({
  method,
  protocol: 'https:',
  hostname: 'eks.eu-west-1.amazonaws.com',
  path: urlOf(sample).pathname,
  query: { ...sample.query },
  headers: { ...sample.headers, host: 'eks.eu-west-1.amazonaws.com' },
  body: sample.body,
})

test('requests are signed as the AWS SDK signs them', async () => {
  await fc.assert(
    fc.asyncProperty(request, async (sample) => {
      const { method, headers, body, time } = sample
      const scope = { credentials: credentialsOf(sample), service: 'eks', region: 'eu-west-1', now: time.getTime() }
      const ours = signed({ method, url: urlOf(sample), headers, body }, scope)
      const theirs = await oracle(sample).sign(oracleRequest(sample, method), { signingDate: time })
      assert.equal(ours['authorization'], theirs.headers['authorization'])
    }),
    { numRuns: 500 },
  )
})

test('URLs are presigned as the AWS SDK presigns them', async () => {
  await fc.assert(
    fc.asyncProperty(request, async (sample) => {
      const { headers, time } = sample
      const scope = { credentials: credentialsOf(sample), service: 'eks', region: 'eu-west-1', now: time.getTime() }
      const ours = presigned({ url: urlOf(sample), headers, expiresSeconds: 60 }, scope)
      const theirs = await oracle(sample).presign(
        { ...oracleRequest(sample, 'GET'), body: '' },
        {
          signingDate: time,
          expiresIn: 60,
          unhoistableHeaders: new Set(Object.keys(headers)),
          signableHeaders: new Set(Object.keys(headers)),
        },
      )
      assert.equal(ours.searchParams.get('X-Amz-Signature'), theirs.query?.['X-Amz-Signature'])
    }),
    { numRuns: 500 },
  )
})
