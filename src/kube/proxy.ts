import { BlockList, isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { KubeconfigError } from './kubeconfig-error.ts'
import type { Environment } from './kubeconfig.ts'

/**
 * The proxy that the environment asks for, with the rules of Go's net/http, which kubectl and every Go client follow:
 * HTTPS_PROXY for https and HTTP_PROXY for http, upper case before lower case, NO_PROXY for exceptions, never for loopback.
 */
export const proxyFor = (server: string, env: Environment): string | undefined => {
  const url = new URL(server)
  const variable = url.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY'
  const proxy = env[variable] || env[variable.toLowerCase()]
  if (!proxy || !needsProxy(url, env['NO_PROXY'] || env['no_proxy'] || '')) return undefined
  return checkedProxy(proxy.includes('://') ? proxy : `http://${proxy}`, variable)
}

/** The URL of a proxy in the form the transport knows; `source` names where it was set. The URL is not shown: it may hold a password. */
export const checkedProxy = (proxy: string, source: string): string => {
  const scheme = URL.canParse(proxy) ? new URL(proxy).protocol : undefined
  if (scheme && proxySchemes.has(scheme) && new URL(proxy).hostname) {
    return proxy.replace(/^socks5h:/i, 'socks5:') // Go lets the proxy resolve names for both
  }
  const problem = scheme ? `a proxy URL cannot begin with ${scheme}//` : 'the proxy is not a URL'
  throw new KubeconfigError({ source, problem, next: 'write it as http://, https:// or socks5://host:port' })
}

const proxySchemes = new Set(['http:', 'https:', 'socks5:', 'socks5h:'])

/** One entry of NO_PROXY: does it cover this host? */
type Exception = (host: Host) => boolean

interface Host {
  name: string
  port: string
  family: 'ipv4' | 'ipv6' | undefined
}

const needsProxy = (url: URL, noProxy: string): boolean => {
  const name = url.hostname.replaceAll(/^\[|\]$/g, '').toLowerCase()
  const host = { name, port: url.port || (url.protocol === 'http:' ? '80' : '443'), family: familyOf(name) }
  if (name === 'localhost' || loopback.some((network) => within(network, host))) return false
  return !noProxy.split(',').some((entry) => exceptionOf(entry.trim().toLowerCase())(host))
}

const exceptionOf = (entry: string): Exception => {
  if (entry === '*') return () => true
  const network = networkOf(entry)
  if (network) return network

  const { host, port } = splitPort(entry)
  if (host === '') return () => false
  const samePort = (target: Host): boolean => port === '' || port === target.port
  const family = familyOf(host)
  if (family) {
    const address = subnet(host, family === 'ipv4' ? 32 : 128, family)
    return (target) => within(address, target) && samePort(target)
  }
  // `a.com` covers a.com and all below it; `.a.com` and `*.a.com` only what is below.
  const pattern = host.replace(/^\*(?=\.)/, '')
  const suffix = asciiOf(pattern.startsWith('.') ? pattern.slice(1) : pattern)
  const itself = !pattern.startsWith('.')
  return (target) => (target.name.endsWith(`.${suffix}`) || (itself && target.name === suffix)) && samePort(target)
}

const familyOf = (host: string): 'ipv4' | 'ipv6' | undefined =>
  host.includes('%') ? undefined : ([undefined, 'ipv4', 'ipv6'] as const)[[0, 4, 6].indexOf(isIP(host))]

const networkOf = (entry: string): Exception | undefined => {
  const [, address = '', digits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? []
  const family = familyOf(address)
  const bits = Number(digits)
  if (!family || bits > (family === 'ipv4' ? 32 : 128)) return undefined
  const network = subnet(address, bits, family)
  // An IPv4 address lies in ::ffff:0:0/96, but not in an IPv6 network that is wider than that.
  const takesIPv4 = family === 'ipv4' || bits >= 96
  return (host) => within(network, host) && (takesIPv4 || !(host.family === 'ipv4' || within(mappedIPv4, host)))
}

// `host:port` and `[v6]:port`; a bare IPv6 address has colons but no port.
const splitPort = (entry: string): { host: string; port: string } => {
  const [, v6, host, port] = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(entry) ?? []
  return port === undefined ? { host: entry, port: '' } : { host: v6 ?? host ?? '', port }
}

const asciiOf = (name: string): string => (/^[\u0020-\u007e]*$/.test(name) ? name : domainToASCII(name) || name)

const subnet = (address: string, bits: number, family: 'ipv4' | 'ipv6'): BlockList => {
  const list = new BlockList()
  list.addSubnet(address, bits, family)
  return list
}

const within = (network: BlockList, { name, family }: Host): boolean =>
  family !== undefined && network.check(name, family)

const mappedIPv4 = subnet('::ffff:0:0', 96, 'ipv6')
const loopback = [subnet('127.0.0.0', 8, 'ipv4'), subnet('::1', 128, 'ipv6')]
