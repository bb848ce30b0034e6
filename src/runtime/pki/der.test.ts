import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { bitString, element, flags, integer, octetString, oid, read, sequence, set, text, time } from './der.ts'
import { addressBytes } from './names.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const letter = fc.constantFrom('a', 'Z', '0', ' ', ':', '-', '@', '*', '_', 'ü', '字', '🔑')
const written = (iso: string) => {
  const [one] = read(time(new Date(iso)))
  return [one!.tag, one!.content.toString()]
}

test('integers are the shortest two’s complement that stays positive', () => {
  assert.equal(hex(integer(0)), '020100')
  assert.equal(hex(integer(127)), '02017f')
  assert.equal(hex(integer(128)), '02020080')
  assert.equal(hex(integer(256)), '02020100')
  assert.throws(() => integer(-1), /negative/)
})

test('any non-negative integer can be read back, and no byte of it is spare', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 1n << 200n }), (value) => {
      const [one, ...more] = read(integer(value))
      const content = one!.content
      assert.equal(BigInt(`0x${hex(content)}`), value)
      assert.equal(content[0]! & 0x80, 0)
      assert.ok(content.length === 1 || content[0] !== 0 || content[1]! & 0x80)
      assert.equal(more.length, 0)
    }),
  )
})

test('contents of any length can be read back', () => {
  for (const length of [0, 1, 127, 128, 255, 256, 65_535, 65_536]) {
    const content = Buffer.alloc(length, 7)
    assert.ok(read(octetString(content))[0]!.content.equals(content), `length ${length}`)
  }
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 5 }), (contents) => {
      const [outer] = read(sequence(...contents.map(octetString)))
      const inner = read(outer!.content).map((one) => hex(one.content))
      assert.deepEqual(inner, contents.map(hex))
    }),
  )
})

test('any text can be read back; what PrintableString cannot hold is UTF-8', () => {
  fc.assert(
    fc.property(fc.string({ unit: letter }), (value) => {
      const [one] = read(text(value))
      assert.equal(one!.content.toString('utf8'), value)
      if (one!.tag === 0x13) assert.match(value, /^[\x20-\x7a]*$/)
    }),
  )
  assert.equal(read(text('system:open-cluster-management:c1'))[0]!.tag, 0x13)
  assert.equal(read(text('a@b'))[0]!.tag, 0x0c)
  assert.throws(() => text('\ud800'), /not well-formed/)
})

test('object identifiers: two numbers share the first byte, long ones take several', () => {
  assert.equal(hex(oid('2.5.4.3')), '0603550403')
  assert.equal(hex(oid('1.2.840.113549.1.1.11')), '06092a864886f70d01010b')
  assert.equal(hex(oid('2.999')), '06028837')
  for (const wrong of ['', '1', '3.1', '1.40', '1.2.x', '1..2']) assert.throws(() => oid(wrong), /object identifier/)
})

test('flags drop the zeros at their end', () => {
  assert.equal(hex(flags(0)), '03020780')
  assert.equal(hex(flags(0, 5, 6)), '03020186')
  assert.equal(hex(flags(8)), '0303070080')
  assert.equal(hex(bitString(Buffer.of(1, 2))), '0303000102')
})

test('times are UTCTime up to 2049 and GeneralizedTime after, without fractions', () => {
  assert.deepEqual(written('2049-12-31T23:59:59.999Z'), [0x17, '491231235959Z'])
  assert.deepEqual(written('2050-01-01T00:00:00Z'), [0x18, '20500101000000Z'])
  assert.deepEqual(written('1949-12-31T23:59:59Z'), [0x18, '19491231235959Z'])
  assert.throws(() => time(new Date(Number.NaN)), /cannot be written/)
  assert.throws(() => time(new Date('+010000-01-01T00:00:00Z')), /cannot be written/)
})

test('a SET is in the order of its encodings', () => {
  assert.equal(hex(set(integer(2), integer(1))), hex(set(integer(1), integer(2))))
})

test('bytes that are not DER are refused', () => {
  for (const wrong of ['30', '3080', '3001', '308101ff', '1f0100', '3085ffffffffff', '30820001'])
    assert.throws(() => read(Buffer.from(wrong, 'hex')), /DER/, wrong)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        const whole = read(bytes).map((one) => one.whole)
        assert.equal(hex(Buffer.concat(whole)), hex(bytes))
      } catch (error) {
        assert.ok(error instanceof RangeError)
      }
    }),
  )
  assert.deepEqual(read(element(0x30)), [{ tag: 0x30, content: Buffer.alloc(0), whole: Buffer.from('3000', 'hex') }])
})

test('addresses are 4 or 16 bytes, however they are written', () => {
  assert.equal(hex(addressBytes('127.0.0.1')), '7f000001')
  assert.equal(hex(addressBytes('::1')), `${'00'.repeat(15)}01`)
  assert.equal(hex(addressBytes('::')), '00'.repeat(16))
  assert.equal(hex(addressBytes('2001:db8::')), `20010db8${'00'.repeat(12)}`)
  assert.equal(hex(addressBytes('::ffff:10.0.0.1')), `${'00'.repeat(10)}ffff0a000001`)
  for (const wrong of ['localhost', '1.2.3', 'fe80::1%eth0']) assert.throws(() => addressBytes(wrong), /not an IP/)
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const groups = hex(addressBytes(address)).match(/.{4}/g)!.join(':')
      assert.equal(new URL(`http://[${groups}]`).hostname, new URL(`http://[${address}]`).hostname)
    }),
  )
})
