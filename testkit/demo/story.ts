import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ManagedClusterAddOn } from '../../src/api/index.ts'
import { ClusterRole, clientFor, connectionFrom, loadKubeconfig, type Client } from '../../src/kube/index.ts'
import { eventually } from '../eventually.ts'
import { clusters, exampleAddOn, type Place } from './place.ts'
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
const catalogue = `apiVersion: addon.open-cluster-management.io/v1beta1
kind: ClusterManagementAddOn
metadata:
  name: hello
spec:
  addOnMeta:
    displayName: Hello
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
  await addOn(place, shell, say)
}

const addOnPlace = 'open-cluster-management-agent-addon'

/** An add-on with a credential of its own. */
const addOn = async (place: Place, shell: Shell, say: (text: string) => void): Promise<void> => {
  const [first, second] = clusters
  say(
    '\nAn add-on is thirty lines of TypeScript. Its controller runs beside the hub, and it is enabled on both clusters:',
  )
  shell.start(exampleAddOn, place.addOn)
  writeFileSync(join(place.folder, 'hello.yaml'), catalogue)
  await shell.show('kubectl --context hub apply -f hello.yaml')
  await shell.show(`clusteradm addon enable --names hello --clusters ${all} --context hub`)
  const hub = await clientOf(place, 'hub')
  try {
    await eventually(
      async () => {
        for (const name of clusters) {
          const { status } = await hub.of(ManagedClusterAddOn, name).get('hello')
          for (const type of ['Available', 'ClusterCertificateRotated', 'RegistrationApplied'])
            if (!status?.conditions?.some((one) => one.type === type && one.status === 'True'))
              throw new Error(`${type} of add-on hello on ${name}: ${JSON.stringify(status?.conditions)}`)
        }
      },
      { timeoutMs: 120_000 },
    )
  } finally {
    hub.close()
  }
  await shell.show('clusteradm get addons --context hub')
  const greeting = `-o 'jsonpath={.data.greeting}{"\\n"}'`
  await shell.show(`kubectl --context ${first} -n ${addOnPlace} get configmap hello ${greeting}`)

  say(`\nIts agent in ${first} has a credential of its own, for what its role allows and for nothing else:`)
  const files = 'for key in kubeconfig tls.crt tls.key'
  const content = `-o go-template='{{index .data "'$key'" | base64decode}}'`
  await shell.show(
    `umask 077; mkdir hello; ${files}; do kubectl --context ${first} -n ${addOnPlace} get secret hello-hub-kubeconfig ${content} > hello/$key; done`,
  )
  const as = 'kubectl --kubeconfig hello/kubeconfig'
  await shell.show(`${as} auth whoami -o 'jsonpath={.status.userInfo.username}{"\\n"}'`)
  await shell.show(`${as} -n ${first} create configmap report --from-literal=state=well`)
  for (const what of [`get secrets -n ${first}`, `get configmaps -n ${second}`])
    await shell.show(`${as} auth can-i ${what} || true`)
}

const clientOf = async ({ kubeconfig: path }: Place, context: string): Promise<Client> =>
  clientFor(connectionFrom(await loadKubeconfig({ path, env: {} }), { context }), { userAgent: 'lanyard-demo' })
