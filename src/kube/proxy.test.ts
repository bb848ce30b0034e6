import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { proxyFor } from './proxy.ts'

const proxied = (server: string, noProxy: string): boolean =>
  proxyFor(server, { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: noProxy }) !== undefined

test('R0.5 the variable follows the scheme, upper case first, and a bare host means http', () => {
  const env = { HTTPS_PROXY: 'http://s', https_proxy: 'http://lower', HTTP_PROXY: 'h:1', ALL_PROXY: 'http://all' }
  assert.equal(proxyFor('https://a', env), 'http://s')
  assert.equal(proxyFor('http://a', env), 'http://h:1')
  assert.equal(proxyFor('https://a', { HTTPS_PROXY: '', https_proxy: 'http://lower' }), 'http://lower')
  assert.equal(proxyFor('https://a', { HTTP_PROXY: 'http://h', ALL_PROXY: 'http://all' }), undefined)
  assert.equal(proxyFor('https://a', { HTTPS_PROXY: 'socks5h://s:1080' }), 'socks5://s:1080')
  assert.equal(proxyFor('https://a', { HTTPS_PROXY: 'http://s', NO_PROXY: '', no_proxy: 'a' }), undefined)
})

test('R0.5 a proxy that cannot be used is named by its variable, not by its value', () => {
  for (const proxy of ['ftp://user:SECRET@h', 'http://user:SECRET@', 'http://a b:SECRET']) {
    assert.throws(
      () => proxyFor('https://a', { HTTPS_PROXY: proxy }),
      (error: Error) => {
        assert.match(error.message, /^HTTPS_PROXY: .*write it as http:\/\/, https:\/\/ or socks5:\/\/host:port/)
        assert.doesNotMatch(error.message, /SECRET/)
        return true
      },
    )
  }
})

// What golang.org/x/net/http/httpproxy answers to the same questions.
const answers: [server: string, noProxy: string, proxied: boolean][] = [
  ['https://a.example.com', 'example.com', false],
  ['https://example.com', 'example.com', false],
  ['https://badexample.com', 'example.com', true],
  ['https://example.com', '.example.com', true],
  ['https://a.example.com', '.example.com', false],
  ['https://example.com', '*.example.com', true],
  ['https://b.a.example.com', '*.example.com', false],
  ['https://a.example.com', '*example.com', true],
  ['https://example.com', 'EXAMPLE.com', false],
  ['https://example.com', ' x , example.com ', false],
  ['https://example.com:6443', 'example.com:6443', false],
  ['https://example.com:6443', 'example.com:443', true],
  ['https://example.com', 'example.com:443', false],
  ['https://example.com', 'example.com:', false],
  ['https://example.com', ':443', true],
  ['https://bücher.example', 'bücher.example', false],
  ['https://example.com', 'x,*', false],
  ['https://10.0.0.1', '*', false],
  ['https://10.1.2.3', '10.0.0.0/8', false],
  ['https://10.1.2.3', '10.9.9.9/8', false],
  ['https://11.1.2.3', '10.0.0.0/8', true],
  ['https://10.1.2.3', '10.0.0.0/33', true],
  ['https://a.example.com', '0.0.0.0/0', true],
  ['https://10.1.2.3', '10.1.2.3', false],
  ['https://10.1.2.3:6443', '10.1.2.3:6443', false],
  ['https://10.1.2.3:6443', '10.1.2.3:443', true],
  ['https://110.1.2.3', '10.1.2.3', true],
  ['https://[fd00::1]', 'fd00::1', false],
  ['https://[fd00::1]', 'fd00:0:0::1', false],
  ['https://[fd00::1]', '[fd00::1]', true],
  ['https://[fd00::1]', '[fd00::1]:443', false],
  ['https://[fd00::1]', 'fd00::/8', false],
  ['https://[fd00::1]', '0.0.0.0/0', true],
  ['https://10.0.0.1', '::/0', true],
  ['https://[::ffff:10.0.0.1]', '10.0.0.0/8', false],
  ['https://localhost:6443', '', false],
  ['https://127.8.9.10', '', false],
  ['https://[::1]', '', false],
  ['https://[::ffff:127.0.0.1]', '', false],
  ['https://localhost.example', '', true],
]
for (const [server, noProxy, expected] of answers) {
  test(`R0.5 NO_PROXY=${noProxy} ${expected ? 'lets a proxy be used for' : 'is heeded for'} ${server}`, () => {
    assert.equal(proxied(server, noProxy), expected)
  })
}

test('R0.5 any domain in NO_PROXY covers itself and what is below it, and nothing else', () => {
  fc.assert(
    fc.property(fc.domain(), fc.domain(), (domain, other) => {
      assert.equal(proxied(`https://${domain}`, domain), false)
      assert.equal(proxied(`https://x.${domain}`, domain), false)
      assert.equal(proxied(`https://${domain}`, `.${domain}`), true)
      assert.equal(proxied(`https://x.${domain}`, `.${domain}`), false)
      const below = other === domain || other.endsWith(`.${domain}`)
      assert.equal(proxied(`https://${other}`, domain), !below)
    }),
  )
})

test('R0.5 any IPv4 network in NO_PROXY covers the addresses whose first bits are its own', () => {
  const value = ([a = 0, b = 0, c = 0, d = 0]: number[]): number => a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d
  const byte = fc.constantFrom(1, 10, 128, 192, 255)
  const address = fc.tuple(byte, byte, byte, byte)
  fc.assert(
    fc.property(address, address, fc.integer({ min: 0, max: 32 }), (host, network, bits) => {
      const shift = 2 ** (32 - bits)
      const inside = Math.floor(value(host) / shift) === Math.floor(value(network) / shift)
      assert.equal(proxied(`https://${host.join('.')}`, `${network.join('.')}/${bits}`), !inside)
    }),
  )
})

test('R0.5 no NO_PROXY at all makes it fail, and loopback is never proxied', () => {
  const text = fc.oneof(
    fc.string(),
    fc.array(fc.constantFrom('[', ']', ':', '/', '*', '.', ',', '1', 'a')).map((all) => all.join('')),
  )
  fc.assert(
    fc.property(text, (noProxy) => {
      proxied('https://example.com', noProxy)
      proxied('https://[fd00::1]:6443', noProxy)
      assert.equal(proxied('https://127.0.0.1:6443', noProxy), false)
    }),
  )
})
