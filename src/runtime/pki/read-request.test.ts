import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { element, integer, octetString, oid, sequence, set, tagged, taggedBytes, text } from './der.ts'
import {
  createAuthority,
  createRequest,
  issue,
  newKey,
  readChain,
  readRequest,
  RequestError,
  validityOf,
} from './index.ts'
import { keyInfo, pem, signed } from './keys.ts'

const key = newKey()
const attribute = (type: string, value: Buffer) => sequence(oid(type), value)
const rdn = (...attributes: Buffer[]) => set(...attributes)
const cn = (value: string) => rdn(attribute('2.5.4.3', text(value)))

/** A request with any parts at all. */
const handMade = (name: Buffer, attributes: Buffer = tagged(0), version = integer(0)): Buffer => {
  const signer = createPrivateKey(key)
  return signed(sequence(version, name, keyInfo(createPublicKey(signer)), attributes), signer)
}
const asPem = (der: Buffer, label = 'CERTIFICATE REQUEST') => pem(label, der)
const extensions = (...list: Buffer[]) => tagged(0, sequence(oid('1.2.840.113549.1.9.14'), set(sequence(...list))))
const extension = (id: string, value: Buffer) => sequence(oid(id), octetString(value))
const faultOf = (text: string): string => {
  try {
    readRequest(text)
  } catch (error) {
    assert.ok(error instanceof RequestError, String(error))
    return error.reason
  }
  return 'none'
}

test('a request is read as it was made: subject in order, names, key, signature', () => {
  const made = createRequest({
    commonName: 'system:open-cluster-management:c1:a1',
    organizations: ['eins', 'zwei ü'],
    organizationalUnits: ['unit'],
    dnsNames: ['a.example'],
    ipAddresses: ['10.0.0.1', '2001:db8::1'],
  })
  const read = readRequest(made.csr)
  assert.deepEqual(read.subject, {
    commonName: 'system:open-cluster-management:c1:a1',
    organizations: ['eins', 'zwei ü'],
    organizationalUnits: ['unit'],
    others: [],
  })
  assert.deepEqual(read.dnsNames, ['a.example'])
  assert.deepEqual(read.ipAddresses, ['0a000001', '20010db8000000000000000000000001'])
  assert.deepEqual([read.publicKey.kind, read.publicKey.bits], ['ec', 256])
  assert.ok(read.publicKey.spki.equals(createPublicKey(made.key).export({ type: 'spki', format: 'der' })))
  assert.equal(read.signatureValid, true)
})

test('other kinds of names, attributes and extensions are seen, whatever they are', () => {
  const names = sequence(taggedBytes(1, Buffer.from('a@b')), taggedBytes(6, Buffer.from('spiffe://x')), tagged(0))
  const subject = sequence(rdn(attribute('2.5.4.6', text('DE'))), cn('x'))
  const list = extensions(extension('2.5.29.17', names), extension('2.5.29.19', sequence()))
  const read = readRequest(asPem(handMade(subject, list)))
  assert.deepEqual([read.emails, read.uris, read.others], [['a@b'], ['spiffe://x'], 1])
  assert.deepEqual(read.subject.others, ['2.5.4.6'])
  assert.deepEqual(read.otherExtensions, ['2.5.29.19'])
  const password = tagged(0, sequence(oid('1.2.840.113549.1.9.7'), set(text('secret'))))
  assert.deepEqual(readRequest(asPem(handMade(subject, password))).otherAttributes, ['1.2.840.113549.1.9.7'])
})

test('values of one SET count like values of their own: nothing hides behind another', () => {
  const both = rdn(attribute('2.5.4.10', text('c1')), attribute('2.5.4.10', text('system:masters')))
  assert.deepEqual(readRequest(asPem(handMade(sequence(both, cn('x'))))).subject.organizations.toSorted(), [
    'c1',
    'system:masters',
  ])
})

test('an RSA request is read, and its signature checked', () => {
  const rsa = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const read = readRequest(createRequest({ commonName: 'x', key: rsa.privateKey }).csr)
  assert.deepEqual([read.publicKey.kind, read.publicKey.bits, read.signatureValid], ['rsa', 2048, true])
})

test('a changed byte anywhere in the signed part makes the signature invalid or the request unreadable', () => {
  const der = handMade(sequence(cn('system:open-cluster-management:c1:a1')))
  fc.assert(
    fc.property(fc.integer({ min: 4, max: der.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, flip) => {
      const changed = Buffer.from(der)
      changed[at] = changed[at]! ^ flip
      try {
        assert.equal(readRequest(asPem(changed)).signatureValid, false)
      } catch (error) {
        assert.ok(error instanceof RequestError, String(error))
      }
    }),
    { numRuns: 500 },
  )
})

test('what could be read in two ways is refused, each for its reason', () => {
  const good = handMade(sequence(cn('x')))
  const pemText = asPem(good)
  const faults: [fault: string, text: string][] = [
    ['none', pemText],
    ['none', `\n${pemText.replaceAll('\n', '\r\n')}\n\n`],
    ['NotPem', ''],
    ['NotPem', 'x'.repeat(100)],
    ['NotPem', `hello\n${pemText}`],
    ['NotPem', `${pemText}hello`],
    ['NotPem', pemText.replace('-----\n', '-----\nProc-Type: 4,ENCRYPTED\n\n')],
    ['NotPem', pemText.replace(/.\n-----END/, '*\n-----END')],
    ['NotPem', pemText.slice(0, -10)],
    ['SeveralPemBlocks', pemText + pemText],
    ['WrongPemType', asPem(good, 'CERTIFICATE')],
    ['WrongPemType', asPem(good, 'NEW CERTIFICATE REQUEST')],
    ['TooLarge', pemText + ' '.repeat(64 * 1024)],
    ['NotDer', asPem(Buffer.concat([good, Buffer.of(0)]))],
    ['NotDer', asPem(Buffer.concat([good, good]))],
    ['NotDer', asPem(Buffer.from([0x30, 0x80, 0, 0]))],
    ['NotARequest', asPem(sequence())],
    ['NotARequest', asPem(sequence(integer(1), integer(2), integer(3)))],
    ['NotARequest', asPem(handMade(sequence(cn('x')), tagged(0), integer(2)))],
    ['NotARequest', asPem(handMade(sequence(cn('a'), cn('b'))))],
    ['NotARequest', asPem(handMade(sequence(rdn())))],
    ['NotARequest', asPem(handMade(sequence(rdn(attribute('2.5.4.3', element(0x1e, Buffer.from('\0x')))))))],
    ['NotARequest', asPem(handMade(sequence(rdn(attribute('2.5.4.3', element(0x0c, Buffer.of(0xff, 0xfe)))))))],
    ['NotARequest', asPem(handMade(sequence(rdn(attribute('2.5.4.3', element(0x13, Buffer.from('a\0b')))))))],
    ['NotARequest', asPem(handMade(sequence(cn('x')), integer(0)))],
    [
      'NotARequest',
      asPem(
        handMade(sequence(cn('x')), extensions(extension('2.5.29.17', sequence()), extension('2.5.29.17', sequence()))),
      ),
    ],
    ['NotARequest', asPem(handMade(sequence(cn('x')), extensions(extension('2.5.29.17', integer(1)))))],
  ]
  for (const [index, [fault, input]] of faults.entries()) assert.equal(faultOf(input), fault, `number ${index}`)
})

test('no text whatever leads to another error than the typed one', () => {
  fc.assert(fc.property(fc.string(), (input) => assert.notEqual(faultOf(input), 'none')))
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
      assert.notEqual(faultOf(asPem(Buffer.from(bytes))), 'none')
    }),
  )
})

test('a chain is valid from its latest beginning to its earliest end, and its leaf says whom it names', () => {
  const at = (day: number) => new Date(Date.UTC(2026, 0, day))
  const authority = createAuthority({ commonName: 'ca', validForMs: 86_400_000 * 9, now: at(3) })
  const leaf = issue(authority, {
    commonName: 'CN=a\nO=b',
    organizations: ['one', 'two'],
    usages: ['client'],
    notBefore: at(1),
    notAfter: at(30),
  })
  const chain = readChain(leaf.cert + authority.cert)
  assert.equal(chain[0]!.subject.commonName, 'CN=a\nO=b')
  assert.deepEqual(chain[0]!.subject.organizations, ['one', 'two'])
  assert.deepEqual(validityOf(chain), { notBefore: at(3).getTime(), notAfter: at(12).getTime() })
  for (const bad of ['', 'x', leaf.key, `${leaf.cert}rest`]) assert.throws(() => readChain(bad))
})
