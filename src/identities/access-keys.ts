import type { Credentials } from '../aws/index.ts'
import type { Secret } from '../kube/index.ts'
import { secretTypePrefix, secretVersions } from './contract.ts'

/** What is wrong with a Secret; never with a value in it. */
export interface SecretFault {
  /** `data.AccessKeyID`, or `type`. */
  field: string
  message: string
}

const required = ['AccessKeyID', 'SecretAccessKey'] as const

/** Both spellings of the specification: that of its types comes first, that of its example second. */
const valueOf = (data: Record<string, string>, key: string): string => {
  const small = `${key[0]!.toLowerCase()}${key.slice(1)}`
  const text = [key, small].map((name) => (Object.hasOwn(data, name) ? data[name] : undefined)).find(Boolean)
  // A line break at the end is what `echo` leaves; no key of AWS has one.
  return text ? Buffer.from(text, 'base64').toString('utf8').trim() : ''
}

/** What a Secret lacks to be an access key. */
export const secretFaults = ({ type, data = {} }: Pick<Secret, 'type' | 'data'>): SecretFault[] => {
  const version = type?.startsWith(secretTypePrefix) ? type.slice(secretTypePrefix.length) : undefined
  if (version !== undefined && !(secretVersions as readonly string[]).includes(version))
    return [
      {
        field: 'type',
        message: `version ${JSON.stringify(version)} of ${secretTypePrefix} is not known: use ${secretTypePrefix}${secretVersions[0]}, or Opaque`,
      },
    ]
  return required
    .filter((key) => valueOf(data, key) === '')
    .map((key) => ({ field: `data.${key}`, message: `is missing or empty: put the ${inWords[key]} there` }))
}

const inWords = { AccessKeyID: 'access key ID', SecretAccessKey: 'secret access key' }

/** The access key in a Secret that has no faults. */
export const accessKeyOf = ({ data = {} }: Pick<Secret, 'data'>): Credentials => {
  const sessionToken = valueOf(data, 'SessionToken')
  return {
    accessKeyId: valueOf(data, 'AccessKeyID'),
    secretAccessKey: valueOf(data, 'SecretAccessKey'),
    ...(sessionToken ? { sessionToken } : {}),
  }
}
