import { isIPv4, isIPv6 } from 'node:net'
import { oid, sequence, set, taggedBytes, text } from './der.ts'

/** Who a certificate speaks for. Kubernetes reads the common name as the user and the organizations as the groups. */
export interface Subject {
  commonName?: string | undefined
  organizations?: readonly string[] | undefined
  organizationalUnits?: readonly string[] | undefined
}

/** Where a server is reached. */
export interface Places {
  dnsNames?: readonly string[] | undefined
  ipAddresses?: readonly string[] | undefined
}

const commonName = '2.5.4.3'
const organization = '2.5.4.10'
const organizationalUnit = '2.5.4.11'

/** The distinguished name, in Go's order; every value is a SET of its own, so their order is kept. */
export const distinguishedName = (subject: Subject): Buffer => {
  const attributes = [
    ...(subject.organizations ?? []).map((value) => [organization, value] as const),
    ...(subject.organizationalUnits ?? []).map((value) => [organizationalUnit, value] as const),
    ...(subject.commonName ? [[commonName, subject.commonName] as const] : []),
  ]
  return sequence(...attributes.map(([type, value]) => set(sequence(oid(type), text(value)))))
}

/** GeneralNames of a subjectAltName extension; undefined when there is none to name. */
export const alternativeNames = ({ dnsNames = [], ipAddresses = [] }: Places): Buffer | undefined => {
  const names = [
    ...dnsNames.map((name) => taggedBytes(2, asciiOf(name))),
    ...ipAddresses.map((address) => taggedBytes(7, addressBytes(address))),
  ]
  return names.length ? sequence(...names) : undefined
}

const asciiOf = (name: string): Buffer => {
  if (!/^[\x21-\x7e]+$/.test(name))
    throw new RangeError(`DNS name ${JSON.stringify(name)} is not plain ASCII: write international names in punycode`)
  return Buffer.from(name, 'ascii')
}

/** 4 bytes of an IPv4 address, 16 of an IPv6 one. */
export const addressBytes = (address: string): Buffer => {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  if (!isIPv6(address) || address.includes('%')) throw new RangeError(`${JSON.stringify(address)} is not an IP address`)
  const [head = '', tail] = address.split('::')
  const before = groupBytes(head)
  const after = groupBytes(tail ?? '')
  return Buffer.concat([before, Buffer.alloc(16 - before.length - after.length), after])
}

/** Bytes of colon-separated groups; the last may be written as an IPv4 address. */
const groupBytes = (groups: string): Buffer =>
  Buffer.concat(
    groups
      .split(':')
      .filter((group) => group !== '')
      .map((group) => (isIPv4(group) ? addressBytes(group) : Buffer.from(group.padStart(4, '0'), 'hex'))),
  )
