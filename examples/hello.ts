/** An add-on: a greeting on every cluster, whose agent reports to the hub as itself. Run it with `node examples/hello.ts`. */
import { defineAddOn, hubClient, inOwnNamespace, maintains, reads, runAddOns } from 'lanyard/addons'

export const hello = defineAddOn({
  name: 'hello',
  registrations: [{ type: 'kubeClient' }],
  permissions: [
    inOwnNamespace(
      reads({ group: 'addon.open-cluster-management.io', resource: 'managedclusteraddons', names: ['hello'] }),
      maintains({ resource: 'configmaps' }),
    ),
  ],
  health: 'work',
  manifests: ({ cluster, installNamespace, variables }) => [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'hello', namespace: installNamespace },
      data: { greeting: `${variables['GREETING'] ?? 'Hello'}, ${cluster.metadata.name}` },
    },
  ],
})

if (import.meta.main) {
  const stop = new AbortController()
  process.on('SIGTERM', () => stop.abort())
  await runAddOns([hello], { client: await hubClient(process.env) }, stop.signal)
}
