import { readFile } from 'node:fs/promises'
import type { ManagedCluster } from '../api/index.ts'
import { ConnectionError, isForbidden, isUnauthorized, type Api, type Client } from '../kube/index.ts'
import { UsageError } from '../main/flags.ts'
import { configKey } from '../registration/contract.ts'
import { grpcAgentDriver } from '../registration/drivers/index.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'
import { caCommand } from './grpc-ca.ts'
import { checkNameIsFree } from './hub-preflight.ts'
import { isDistrust } from './hub-trust.ts'

/** What a person says about the endpoint of a hub. */
export interface EndpointValues {
  'grpc-server': string
  'grpc-ca-file': string
  'cluster-name': string
}

/** Where the field's endpoints listen. */
const usualPort = 8090

/** `host:port` of the endpoint, however it was written. Throws when it is no address. */
export const endpointOf = (said: string): string => {
  const text = said.replace(/^(?:https|grpcs?):\/\//, '').replace(/\/+$/, '')
  const url = `https://${text}`
  if (!text || !URL.canParse(url) || new URL(url).pathname !== '/' || new URL(url).username)
    throw new UsageError(
      `--grpc-server ${JSON.stringify(said.slice(0, 200))} is not an address such as hub.example.com:${usualPort}`,
    )
  // A URL leaves the port of https out, and ours is another one unless it was said.
  return /:\d+$/.test(text) ? text : `${text}:${usualPort}`
}

/** The configuration with which an agent asks to be let in, under the names that the field uses. */
export const bootstrapConfig = async (parts: { endpoint: string; ca: string; token: string }): Promise<string> => {
  const { stringify } = await import('yaml')
  const { endpoint: url, ca, token } = parts
  return stringify({ url, caData: Buffer.from(ca).toString('base64'), token }, { lineWidth: 0 })
}

/** Verifies the endpoint, shows it the token, and asks whether the name is free. The answer is what the bootstrap secret has to hold. */
export const meetEndpoint = async (
  cli: Cli & { flags: EndpointValues },
  local: Client | undefined,
  token: string,
): Promise<{ hub: Api; known: ManagedCluster | undefined; config: string; server: string }> => {
  const { 'grpc-ca-file': file, 'cluster-name': cluster } = cli.flags
  const endpoint = endpointOf(cli.flags['grpc-server'])
  const ca = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(`--grpc-ca-file ${file} cannot be read: ${cause.code}`, { cause })
  })
  if (!ca.includes('-----BEGIN CERTIFICATE-----'))
    throw new CliError(`--grpc-ca-file ${file} holds no certificate`, { next: caNext })
  const config = await bootstrapConfig({ endpoint, ca, token })
  const driver = grpcAgentDriver({ env: cli.env, clock: cli.clock })
  const identity = { cluster, agent: '' }
  const hub = await driver.asBootstrap({ [configKey]: config }, '--grpc-server', { userAgent: cli.program }, identity)
  try {
    return { hub, known: await checkNameIsFree(cli, hub, local, cluster), config, server: `https://${endpoint}` }
  } catch (error) {
    hub.close()
    throw explained(cli, endpoint, file, error)
  }
}

const caNext = `on the hub: ${caCommand('ca.crt')}`

const explained = (cli: Cli, endpoint: string, file: string, cause: unknown): unknown => {
  const newToken = `get a new one on the hub: ${cli.program} get token`
  if (isUnauthorized(cause))
    return new CliError(`the endpoint ${endpoint} refuses the token: it is wrong, expired, or from another hub`, {
      next: newToken,
      cause,
    })
  if (isForbidden(cause))
    return new CliError(`the endpoint ${endpoint} does not let this token ask to join: ${cause.serverMessage}`, {
      next: newToken,
      cause,
    })
  if (!(cause instanceof ConnectionError)) return cause
  if (isDistrust(cause))
    return new CliError(`the certificate of the endpoint ${endpoint} is not from the CA in ${file}`, {
      next: caNext,
      cause,
    })
  return new CliError(`the endpoint ${endpoint} cannot be reached: ${cause.message}`, {
    next: `check --grpc-server, and that the hub was made with ${cli.program} init --registration-auth=grpc`,
    cause,
  })
}
