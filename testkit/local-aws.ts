import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Component } from './component.ts'
import { keptFolder, removeKeptFolder } from './keeper.ts'
import { localAwsBinary } from './paths.ts'
import { freePort, withFreePorts } from './ports.ts'
import { plainProbe } from './probe.ts'

/** AWS on this machine: IAM, STS, EKS, EC2 and ELBv2 of any number of accounts, with policies enforced. */
export interface LocalAws {
  /** http://127.0.0.1:port, for all services and regions. A 12-digit access key id is the root user of that account. */
  endpoint: string
  folder: string
  process: Component
  /** Ends it; everything it held is gone. */
  stop: () => Promise<void>
}

/** Starts the local AWS (ministack) with nothing in it, or with the state of services as it keeps it itself, by their names. */
export const startLocalAws = (state: Record<string, string> = {}): Promise<LocalAws> =>
  withFreePorts(async () => {
    const port = await freePort()
    const folder = keptFolder('aws')
    const health = plainProbe({ host: '127.0.0.1', port })
    for (const [service, kept] of Object.entries(state)) writeFileSync(join(folder, `${service}.json`), kept)
    const server = new Component({
      binary: localAwsBinary('ministack'),
      args: [],
      env: {
        GATEWAY_PORT: String(port),
        BIND_HOST: '127.0.0.1',
        MINISTACK_HOST: '127.0.0.1',
        AUTH: 'true',
        SERVICES: 'iam,sts,eks,ec2,elbv2',
        LOG_LEVEL: 'WARNING',
        STATE_DIR: folder,
        PERSIST_STATE: Object.keys(state).length ? '1' : '0',
        TMPDIR: folder, // where it notes its pid
        AWS_EC2_METADATA_DISABLED: 'true', // it carries an AWS SDK, and that must not look for credentials
        PYTHONDONTWRITEBYTECODE: '1',
      },
      folder,
      ready: async () => (await health('/_ministack/ready')) === 200,
    })
    const stop = async () => {
      await server.kill()
      removeKeptFolder(folder)
    }
    try {
      await server.start()
    } catch (error) {
      await stop()
      throw error
    }
    return { endpoint: `http://127.0.0.1:${port}`, folder, process: server, stop }
  })
