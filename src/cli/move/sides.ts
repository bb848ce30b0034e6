import { hubAt, type Hub } from '../../identities/move/index.ts'
import { withCluster, type Cluster } from '../cluster.ts'
import type { Cli } from '../command.ts'

/** `move`, as it was typed. */
export type Move = Cli & {
  flags: {
    'to-kubeconfig': string
    'to-context': string
    'to-hub-namespace': string
    'hub-namespace': string
    'include-secrets': boolean
    'account-check': boolean
    'keep-allowed-namespaces': boolean
    namespace: string
    region: string
    output: string
  }
}

/** The namespace that is meant: said, or that of the context. */
export const namespaceOf = (cli: Move, { kubeconfig, context }: Cluster): string =>
  cli.flags.namespace || kubeconfig.contexts.get(context)?.value.namespace || 'default'

/** Runs something with the cluster to move to. */
export const withTarget = <T>(cli: Move, run: (target: Hub) => Promise<T>): Promise<T> => {
  const { 'to-kubeconfig': file, 'to-context': context, 'to-hub-namespace': space } = cli.flags
  // Without a file it is another context of the same one.
  const where = { kubeconfig: file || cli.flags.kubeconfig, context: context || (file ? '' : cli.flags.context) }
  return withCluster({ env: cli.env, program: cli.program, flags: where }, async ({ client }) =>
    run(await hubAt(client, space || cli.flags['hub-namespace'], cli.signal)),
  )
}
