import { readFile } from 'node:fs/promises'
import {
  ApiError,
  clientFor,
  ConfigMap,
  ConnectionError,
  parseKubeconfig,
  type Client,
  type Connection,
} from '../kube/index.ts'
import { pinsOf } from './ca.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'
import { ask, isInteractive } from './stdin.ts'

/** How the person says which hub is meant. */
export interface TrustOptions {
  /** Without credentials and CA. */
  connection: Connection
  caFile: string
  hashes: readonly string[]
  trustOnFirstUse: boolean
}

/** The hub's CA, and why it is believed. Undefined: the roots of this machine will do. */
export interface Trust {
  ca: string | undefined
  because: string
}

/**
 * Finds out what the hub is verified with. The token is never sent before: whoever stands in between could keep it. What is
 * fetched over an unverified connection is public, and believed only with a pinned hash or the person's word.
 */
export const trustIn = async (cli: Cli, options: TrustOptions): Promise<Trust> => {
  const { connection, caFile, hashes } = options
  if (caFile) return { ca: await readCa(caFile), because: `the CA in ${caFile}` }
  if (hashes.length === 0 && (await isKnown(cli, connection)))
    return { ca: undefined, because: 'the roots of this machine' }
  const shown = await shownCa(cli, connection)
  if (hashes.length > 0) {
    const matching = shown.filter(({ hash }) => hashes.includes(hash))
    if (matching.length > 0) return { ca: matching.map(({ pem }) => pem).join('\n'), because: '--ca-hash' }
    throw new CliError(
      `hub ${connection.server} shows another CA than --ca-hash says: ${shown.map(({ hash }) => hash).join(', ')}`,
      { next: 'somebody may stand in between; if the CA was replaced, get token on the hub prints the new hash' },
    )
  }
  const ca = shown.map(({ pem }) => pem).join('\n')
  const seen = shown.map(({ hash }) => hash).join(', ')
  if (options.trustOnFirstUse) {
    cli.progress.warn(`the CA of hub ${connection.server} is taken unverified, as --trust-on-first-use says: ${seen}`)
    return { ca, because: '--trust-on-first-use' }
  }
  if (isInteractive(cli)) {
    cli.progress.say(`Nothing says yet that ${connection.server} is the hub you mean. It shows the CA ${seen}`)
    cli.progress.say(`Compare that with what ${cli.program} get token prints on the hub.`)
    if (/^y(es)?$/i.test((await ask(cli, 'Is it the same? [y/N] ')).trim()))
      return { ca, because: 'the person said so' }
  }
  throw new CliError(`nothing proves that ${connection.server} is the hub you mean: its CA is not known here`, {
    next: [
      `give --ca-hash ${shown[0]?.hash ?? 'sha256:…'} if ${cli.program} get token prints the same on the hub,`,
      'or --ca-file with the CA of the hub, or --trust-on-first-use to take the risk',
    ].join('\n'),
  })
}

const readCa = async (file: string): Promise<string> => {
  const ca = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(`--ca-file ${file} cannot be read: ${cause.code}`, { cause })
  })
  try {
    if (pinsOf(ca).length > 0) return ca
  } catch (cause) {
    throw new CliError(`--ca-file ${file} holds a certificate that cannot be read`, { cause })
  }
  throw new CliError(`--ca-file ${file} holds no certificate`, { next: 'it must be PEM: -----BEGIN CERTIFICATE-----' })
}

/** Whether the hub's certificate is from an authority that this machine trusts anyway. */
const isKnown = async (cli: Cli, connection: Connection): Promise<boolean> => {
  const client = clientFor({ ...connection, credentials: async () => ({}) }, { userAgent: cli.program })
  try {
    await client.json({ method: 'GET', path: '/version', signal: cli.signal })
    return true
  } catch (error) {
    // A refusal came over TLS that was verified.
    if (error instanceof ApiError) return true
    if (error instanceof ConnectionError && isDistrust(error)) return false
    throw error
  } finally {
    client.close()
  }
}

/** TLS worked, but the certificate is from nobody we trust. Another name in it is another matter. */
export const isDistrust = ({ code }: ConnectionError): boolean =>
  /^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED|CERT_UNTRUSTED|CERT_SIGNATURE)/.test(code)

/** What the hub says its CA is: in kube-public/cluster-info, which strangers may read where init or kubeadm set up the hub. */
const shownCa = async (cli: Cli, connection: Connection) => {
  const unverified: Connection = { ...connection, insecureSkipTlsVerify: true, credentials: async () => ({}) }
  const client = clientFor(unverified, { userAgent: cli.program })
  try {
    const info = await clusterInfo(client, cli.signal)
    const pins = info?.ca ? pinsOf(info.ca) : []
    if (pins.length > 0) return pins
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
  } finally {
    client.close()
  }
  throw new CliError(`hub ${connection.server} does not tell strangers its CA (ConfigMap kube-public/cluster-info)`, {
    next: `give --ca-file with the CA of the hub, or run ${cli.program} init on the hub again, which publishes it`,
  })
}

/** What `kube-public/cluster-info` says of a cluster: where it is, and its CA. Undefined when there is none. */
export const clusterInfo = async (
  client: Client,
  signal: AbortSignal,
): Promise<{ server: string; ca: string | undefined } | undefined> => {
  const map = await client.of(ConfigMap, 'kube-public').find('cluster-info', { signal })
  const text = map?.data?.['kubeconfig']
  if (!text) return undefined
  // kubeadm leaves the name of its one cluster empty, which no other kubeconfig may do.
  const { clusters } = await parseKubeconfig(text.replace(/name: *""/, 'name: cluster'), {
    source: 'ConfigMap kube-public/cluster-info',
  })
  const [first] = [...clusters.values()]
  const data = first?.value['certificate-authority-data']
  return first && { server: first.value.server ?? '', ca: data && Buffer.from(data, 'base64').toString('utf8') }
}
