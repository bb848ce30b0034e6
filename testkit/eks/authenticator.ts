import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Component } from '../component.ts'
import { authenticatorBinary, plainEnvironment } from '../paths.ts'
import { freePort } from '../ports.ts'
import { plainProbe } from '../probe.ts'
import type { ConnectProxy } from './connect-proxy.ts'

/** The aws-iam-authenticator before it runs: the API server needs its files first. */
export interface Authenticator {
  /** For `--authentication-token-webhook-config-file`. */
  webhookConfig: string
  /** Starts it, reading `aws-auth` through this kubeconfig. */
  start: (kubeconfig: string) => Promise<Component>
}

export interface AuthenticatorOptions {
  folder: string
  cluster: string
  partition: string
  region: string
  proxy: ConnectProxy
}

/** Makes the certificate and the webhook's kubeconfig of an authenticator for one cluster. */
export const prepareAuthenticator = async (options: AuthenticatorOptions): Promise<Authenticator> => {
  const { cluster, partition, region, proxy } = options
  const folder = join(options.folder, 'authenticator')
  mkdirSync(folder, { recursive: true })
  const binary = authenticatorBinary()
  const port = await freePort()
  // Both write and read fixed names in their folder.
  await promisify(execFile)(binary, ['init', '-i', cluster], { cwd: folder, env: plainEnvironment() })
  const webhookConfig = join(folder, 'aws-iam-authenticator.kubeconfig')
  writeFileSync(
    webhookConfig,
    readFileSync(webhookConfig, 'utf8').replace(/server: \S+/, `server: https://localhost:${port}/authenticate`),
  )
  const ca = join(folder, 'aws-ca.pem')
  writeFileSync(ca, proxy.ca)
  const flags = [
    '--backend-mode=EKSConfigMap',
    '--kubeconfig-pregenerated',
    '--address=127.0.0.1',
    `--state-dir=${folder}`,
    `--port=${port}`,
    `--partition=${partition}`,
  ]
  return {
    webhookConfig,
    start: async (kubeconfig) => {
      const component = new Component({
        binary,
        args: ['server', '-i', cluster, `--kubeconfig=${kubeconfig}`, ...flags],
        env: {
          AWS_REGION: region,
          AWS_EC2_METADATA_DISABLED: 'true',
          SSL_CERT_FILE: ca,
          HTTPS_PROXY: proxy.url,
        },
        folder: options.folder,
        // It speaks TLS: an answer in the clear that is not a refused connection says that it listens.
        ready: async () => (await plainProbe({ host: '127.0.0.1', port })('/healthz')) > 0,
      })
      await component.start()
      return component
    },
  }
}
