import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ClusterRole, clientFor, connectionFrom, loadKubeconfig, type Client } from '../../src/kube/index.ts'
import { eventually } from '../eventually.ts'
import { clusters, type Place } from './place.ts'
import type { Shell } from './shell.ts'

const role = 'pod-reader'
const manifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ${role}
rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list]
`
const verbs = `-o 'jsonpath={.rules[0].verbs}{"\\n"}'`
const all = clusters.join(',')

/** Shows the main job with the commands that anybody would use: clusters join, are accepted, get work that is protected. */
export const tell = async (place: Place, shell: Shell, say: (text: string) => void): Promise<void> => {
  say('\nThree clusters run, and know nothing of each other. One becomes the hub:')
  await shell.show('clusteradm init --wait --context hub')

  say('\nWhoever wants to join needs a token, which can do no more than ask, and a way to know the hub:')
  const ticket = JSON.parse(await shell.show('clusteradm get token --context hub -o json')) as Record<string, string>
  shell.set('LANYARD_HUB_TOKEN', ticket['hub-token']!)
  const hub = `--hub-apiserver ${ticket['hub-apiserver']} --ca-hash ${ticket['ca-hash']}`
  say('\nThe token is in $LANYARD_HUB_TOKEN now. Two clusters ask to join:')
  for (const name of clusters)
    await shell.show(`clusteradm join --context ${name} --cluster-name ${name} ${hub} --wait`)

  say('\nNobody has let them in yet. An administrator of the hub does:')
  await shell.show(`clusteradm accept --clusters ${all} --wait --context hub`)
  await shell.show('clusteradm get clusters --context hub')

  say('\nA ClusterRole goes to both of them:')
  writeFileSync(join(place.folder, 'role.yaml'), manifest)
  await shell.show(`clusteradm create work rbac -f role.yaml --clusters ${all} --wait --context hub`)
  await shell.show('clusteradm get works --context hub')
  for (const name of clusters) await shell.show(`kubectl --context ${name} get clusterrole ${role} ${verbs}`)

  const [first] = clusters
  say(`\nSomebody in ${first} gives it more rights; the agent sees it and takes them back:`)
  const there = await clientOf(place, first)
  try {
    const before = await there.of(ClusterRole).get(role)
    const change = `'[{"op":"add","path":"/rules/0/verbs/-","value":"delete"}]'`
    await shell.show(`kubectl --context ${first} patch clusterrole ${role} --type=json -p ${change}`)
    await eventually(async () => {
      const { rules, metadata } = await there.of(ClusterRole).get(role)
      const changed = metadata.resourceVersion !== before.metadata.resourceVersion
      if (!changed || rules?.[0]?.verbs.includes('delete')) throw new Error('the role is not repaired yet')
    })
  } finally {
    there.close()
  }
  await shell.show(`kubectl --context ${first} get clusterrole ${role} ${verbs}`)
}

const clientOf = async ({ kubeconfig: path }: Place, context: string): Promise<Client> =>
  clientFor(connectionFrom(await loadKubeconfig({ path, env: {} }), { context }), { userAgent: 'lanyard-demo' })
