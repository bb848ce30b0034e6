import {
  connectionFrom,
  kubeconfigText,
  parseKubeconfig,
  parseYaml,
  KubeconfigError,
  type Connection,
  type Environment,
  type KubeconfigParts,
  type SecretData,
} from '../../../../kube/index.ts'
import { secretKey } from '../../../contract.ts'
import type { HubAddress } from '../../driver.ts'
import { hubFromKubeconfig } from '../../kubeconfig-hub.ts'
import { configKey } from '../contract.ts'

/** What the file `config.yaml` may hold, as the field spells it. Whatever else is in it is for others. */
interface GrpcConfig {
  /** `host:port`, without a scheme. */
  url?: unknown
  caFile?: unknown
  /** Base64, as in a kubeconfig. */
  caData?: unknown
  clientCertFile?: unknown
  clientCertData?: unknown
  clientKeyFile?: unknown
  clientKeyData?: unknown
  token?: unknown
  tokenFile?: unknown
}

const fields = [
  'url',
  'caFile',
  'caData',
  'clientCertFile',
  'clientCertData',
  'clientKeyFile',
  'clientKeyData',
  'token',
  'tokenFile',
] as const

/** How the entry of the hub is called in kubeconfigs that are made from such a file. */
const clusterEntry = 'hub'

/** Where the configuration in a secret sends us. A kubeconfig beside it says where add-ons find the API server. */
export const hubFromConfig = async (secret: SecretData, source: string, env?: Environment): Promise<HubAddress> => {
  const hub = await hubFromKubeconfig({ [secretKey.kubeconfig]: await asKubeconfig(secret, source) }, source, env)
  if (!hub.ca)
    throw problem(source, 'it has no CA', "put the endpoint's CA into caData: base64 of the PEM that the hub publishes")
  const addOns = await apiServerIn(secret, source, env)
  return { ...hub, ...(addOns && addOns.server !== hub.server ? { addOns } : {}) }
}

/** The endpoint as the user whom the configuration names. */
export const connectionFromConfig = async (
  secret: SecretData,
  source: string,
  { env, now }: { env?: Environment | undefined; now?: (() => number) | undefined },
): Promise<Connection> =>
  connectionFrom(await parseKubeconfig(await asKubeconfig(secret, source), { source }), { env, now })

/** The configuration that lies beside a certificate, for whoever else reads the secret as a folder. */
export const configText = async ({ server, ca }: HubAddress): Promise<string> => {
  const { stringify } = await import('yaml')
  const config = {
    url: new URL(server).host,
    ...(ca === undefined ? {} : { caData: Buffer.from(ca).toString('base64') }),
    clientCertFile: secretKey.certificate,
    clientKeyFile: secretKey.key,
  }
  return stringify(config, { lineWidth: 0 })
}

const problem = (source: string, what: string, next: string, cause?: unknown): KubeconfigError =>
  new KubeconfigError({ source: `${configKey} of ${source}`, problem: what, next, cause })

/** The same as a kubeconfig, so that everything that is known of those holds: what is refused, and in which words. */
const asKubeconfig = async (secret: SecretData, source: string): Promise<string> => {
  const config = await configIn(secret, source)
  const { url } = config
  if (!url) throw problem(source, 'url is missing', 'write the endpoint of the hub as host:port')
  const server = /^https?:\/\//.test(url) ? url : `https://${url}`
  if (!URL.canParse(server) || !new URL(server).host)
    throw problem(source, 'url is no address', 'write the endpoint of the hub as host:port')
  return kubeconfigText({
    cluster: clusterEntry,
    server,
    ca: textOf(config, 'ca', secret, source),
    user: userOf(config, secret, source),
  })
}

const userOf = (config: Config, secret: SecretData, source: string): KubeconfigParts['user'] => {
  const cert = textOf(config, 'clientCert', secret, source)
  const key = textOf(config, 'clientKey', secret, source)
  if (cert && key) return { cert, key }
  if (cert || key) throw problem(source, 'of certificate and key only one is there', 'give both, or a token')
  const token = config.token ?? (config.tokenFile && fileIn(config.tokenFile, secret, source))
  if (token) return { token: token.trim() }
  throw problem(source, 'it says no user', 'give a token, or clientCertData and clientKeyData')
}

type Config = Partial<Record<(typeof fields)[number], string>>

const configIn = async (secret: SecretData, source: string): Promise<Config> => {
  const text = secret[configKey]
  if (!text?.trim())
    throw problem(source, 'it is missing', `put the address of the hub's gRPC endpoint there, as clusteradm join does`)
  const { value, problem: wrong } = await parseYaml(text)
  if (wrong) throw problem(source, wrong, 'correct it')
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw problem(source, 'it is no mapping', 'write url: host:port and the rest line by line')
  const said = value as GrpcConfig
  return Object.fromEntries(
    fields.flatMap((field) => {
      const one = said[field]
      if (one === undefined || one === null || one === '') return []
      if (typeof one !== 'string') throw problem(source, `${field} is not text`, 'put it in quotes')
      return [[field, one]]
    }),
  )
}

const textOf = (
  config: Config,
  what: 'ca' | 'clientCert' | 'clientKey',
  secret: SecretData,
  source: string,
): string | undefined => {
  const data = config[`${what}Data`]
  if (data !== undefined) {
    // Go accepts PEM that somebody has not encoded nowhere; people write it all the same.
    if (data.includes('-----BEGIN')) return data
    const text = Buffer.from(data, 'base64').toString('utf8')
    if (!text.includes('-----BEGIN')) throw problem(source, `${what}Data is not the base64 of PEM`, 'encode it again')
    return text
  }
  const file = config[`${what}File`]
  return file === undefined ? undefined : fileIn(file, secret, source)
}

/** A file lies in the folder where the secret is mounted, which is a key of the secret; no other file is read. */
const fileIn = (path: string, secret: SecretData, source: string): string => {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const text = secret[name]
  if (text !== undefined) return text
  throw problem(source, `it names the file ${JSON.stringify(name)}, and the secret has no such key`, 'put it there')
}

const apiServerIn = async (
  secret: SecretData,
  source: string,
  env: Environment | undefined,
): Promise<HubAddress | undefined> => {
  if (!secret[secretKey.kubeconfig]?.trim()) return undefined
  return hubFromKubeconfig(secret, source, env)
}
