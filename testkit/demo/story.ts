import { execFileSync } from 'node:child_process'
import { label, ManagedCluster, ManagedClusterSet } from '../../src/api/index.ts'
import { clientFor, connectionFrom, isAlreadyExists, loadKubeconfig, type Client } from '../../src/kube/index.ts'
import { eventually } from '../eventually.ts'
import { controlPlaneBinary } from '../paths.ts'
import type { Place, Ready } from './place.ts'

/** Shows what exists so far: kinds that the API server checks, and a controller that keeps their status current. */
export const tell = async (place: Place, { health }: Ready): Promise<void> => {
  const client = clientFor(connectionFrom(await loadKubeconfig({ path: place.kubeconfig, env: {} })))
  const kubectl = (...args: string[]): void => {
    console.log(`\n$ kubectl ${args.join(' ')}`)
    const options = { encoding: 'utf8' as const, env: { KUBECONFIG: place.kubeconfig, HOME: place.folder } }
    process.stdout.write(execFileSync(controlPlaneBinary('kubectl'), args, options))
  }
  try {
    console.log('\nThree clusters ask to join, two of them in the set "production".')
    await exists(client.of(ManagedClusterSet).create({ metadata: { name: 'production' } }))
    await exists(client.of(ManagedCluster).create(cluster('paris', 'production')))
    await exists(client.of(ManagedCluster).create(cluster('lagos', 'production')))
    await exists(client.of(ManagedCluster).create(cluster('osaka', 'staging')))
    await counted(client, 2)
    kubectl('get', 'managedclusters')
    kubectl('get', 'managedclusterset', 'production', '-o', 'jsonpath={.status.conditions[0].message}{"\\n"}')

    console.log('\nThe third moves to the set; the controller sees it and writes the new count.')
    await client
      .of(ManagedCluster)
      .patch('osaka', { merge: { metadata: { labels: { [label.clusterSet]: 'production' } } } })
    await counted(client, 3)
    kubectl('get', 'managedclusterset', 'production', '-o', 'jsonpath={.status.conditions[0].message}{"\\n"}')

    console.log('\nIts health, and what it cost so far:')
    console.log(`readyz: ${(await (await fetch(`${health}/readyz`)).text()).trim()}`)
    const metrics = await (await fetch(`${health}/metrics`)).text()
    const shown = /^(controller_runtime_reconcile_total|rest_client_requests_total|process_resident_memory_bytes)/
    console.log(
      metrics
        .split('\n')
        .filter((line) => shown.test(line))
        .join('\n'),
    )
  } finally {
    client.close()
  }
}

const cluster = (name: string, set: string): ManagedCluster => ({
  metadata: { name, labels: { [label.clusterSet]: set } },
  spec: { hubAcceptsClient: false },
})

// The story can be told again while the demo runs.
const exists = (created: Promise<unknown>): Promise<unknown> =>
  created.catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })

const counted = (client: Client, atLeast: number): Promise<void> =>
  eventually(async () => {
    const set = await client.of(ManagedClusterSet).get('production')
    const selected = Number.parseInt(set.status?.conditions?.[0]?.message ?? '', 10)
    if (!(selected >= atLeast)) throw new Error(`${selected} clusters are counted, not ${atLeast} yet`)
  })
