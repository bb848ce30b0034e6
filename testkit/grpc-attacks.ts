/** What a hostile client sends to a gRPC endpoint. `h1` attacks, `h2` is the victim; each is refused, and nothing is written. */
import { label, signer, type ManagedCluster } from '../src/api/index.ts'
import {
  attribute,
  dataType,
  encodePublish,
  encodeSubscription,
  framed,
  prefixLength,
  type CloudEvent,
  type EventParts,
} from '../src/events/index.ts'
import type { KubeObject } from '../src/kube/index.ts'
import { agentRequest, said, saidObject } from './grpc-hub.ts'

/** Who sends it. */
export type Attacker =
  | 'h1'
  | 'bootstrap'
  | 'nobody'
  | 'a stranger’s token'
  | 'a bad token'
  | 'expired'
  | 'foreign'
  | 'two clusters'

export interface Attack {
  title: string
  by: Attacker
  /** An event to publish, a subscription to ask for, or bytes to send. */
  event?: CloudEvent
  subscribe?: { clusterName: string; dataType: string }
  bytes?: { path: string; body: Buffer }
}

export interface Victim {
  cluster: ManagedCluster
  own: ManagedCluster
  addOn: KubeObject
  workUid: string
}

const create = { side: 'spec', action: 'create_request' } as const
const update = { side: 'spec', action: 'update_request' } as const
const report = { side: 'status', action: 'update_request' } as const
const remove = { side: 'spec', action: 'delete_request' } as const
const resync = { side: 'spec', action: 'resync_request' } as const
const clusters = { dataType: dataType.managedClusters }
const csrs = { dataType: dataType.certificateSigningRequests }
const leases = { dataType: dataType.leases }
const works = { dataType: dataType.manifestBundles }
const tokens = { dataType: dataType.tokenRequests }
const events = { dataType: dataType.events }

const lease = (namespace: string, name = 'managed-cluster-lease') =>
  ({ metadata: { name, namespace }, spec: { renewTime: '2026-01-01T00:00:00.000000Z' } }) as KubeObject
const kubeEvent = (namespace: string) =>
  ({
    metadata: { name: 'e', namespace },
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'x',
    reportingInstance: 'x',
    action: 'x',
    reason: 'x',
    regarding: { kind: 'Pod', name: 'x', namespace },
    type: 'Normal',
  }) as KubeObject
const csr = (
  cluster: string,
  name: string,
  change: { signerName?: string; addOn?: string; label?: string | undefined } = {},
) => {
  const { object } = agentRequest(cluster, name)
  const labelled = 'label' in change ? change.label : cluster
  return {
    metadata: {
      name,
      labels: {
        ...(labelled === undefined ? {} : { [label.clusterName]: labelled }),
        ...(change.addOn ? { [label.addOnName]: change.addOn } : {}),
      },
    },
    spec: { ...object.spec, ...(change.signerName ? { signerName: change.signerName } : {}) },
  } as KubeObject
}
const status = (parts: Partial<EventParts>, cluster = 'h1') =>
  said(cluster, { ...works, ...report, resourceVersion: 1, data: { conditions: [], resourceStatus: [] }, ...parts })
const token = (namespace: string, name: string, uid: string | undefined = 'u1') =>
  said('h1', { ...tokens, ...create, data: { metadata: { name, namespace, ...(uid ? { uid } : {}) }, spec: {} } })
const raw = (title: string, method: string, body: Buffer): Attack => ({
  title,
  by: 'h1',
  bytes: { path: `/io.cloudevents.v1.CloudEventService/${method}`, body },
})
const frame = (body: Buffer): Buffer => framed(Buffer.concat([Buffer.alloc(prefixLength), body]))
const attributed = (event: CloudEvent, ...more: [string, string | number][]): CloudEvent => ({
  ...event,
  attributes: new Map([...event.attributes, ...more]),
})

export const attacksOn = ({ cluster, own, addOn, workUid }: Victim): Attack[] => {
  const h1 = (title: string, event: CloudEvent): Attack => ({ title, by: 'h1', event })
  const changed = (change: { metadata?: object; spec?: object }): ManagedCluster => ({
    ...own,
    metadata: { ...own.metadata, ...change.metadata },
    spec: { ...own.spec, ...change.spec },
  })
  const fresh = (name: string, spec: object = {}) => ({ metadata: { name }, spec }) as unknown as KubeObject
  const noVersion = <T extends KubeObject>(object: T): T => ({
    ...object,
    metadata: { ...object.metadata, resourceVersion: undefined },
  })
  const bootstrap = (title: string, event: CloudEvent): Attack => ({ title, by: 'bootstrap', event })
  const good = encodePublish(saidObject('h1', { ...leases, ...update }, lease('h1')))
  return [
    h1('the victim’s cluster is created by its name', saidObject('h2', { ...clusters, ...create }, fresh('h2'))),
    h1('a cluster of another name is created in its own', saidObject('h1', { ...clusters, ...create }, fresh('h9'))),
    h1('a cluster of another name is created', saidObject('h9', { ...clusters, ...create }, fresh('h9'))),
    h1('the victim’s status in its own name', saidObject('h1', { ...clusters, ...report }, cluster)),
    h1('the victim’s status in the victim’s name', saidObject('h2', { ...clusters, ...report }, cluster)),
    h1(
      'the victim’s status, with its own resource id',
      saidObject('h1', { ...clusters, ...report }, cluster, { resourceId: 'h1' }),
    ),
    h1('the victim’s spec', saidObject('h2', { ...clusters, ...update }, cluster)),
    h1(
      'its own status with the victim’s resource id',
      saidObject('h1', { ...clusters, ...report }, own, { resourceId: 'h2' }),
    ),
    h1('its own status over whatever there is', saidObject('h1', { ...clusters, ...report }, noVersion(own))),
    h1(
      'its own set',
      saidObject('h1', { ...clusters, ...update }, changed({ metadata: { labels: { [label.clusterSet]: 'prod' } } })),
    ),
    h1(
      'its own taints',
      saidObject('h1', { ...clusters, ...update }, changed({ spec: { taints: [{ key: 'a', effect: 'NoSelect' }] } })),
    ),
    h1(
      'its own annotations',
      saidObject('h1', { ...clusters, ...update }, changed({ metadata: { annotations: { a: 'b' } } })),
    ),
    h1('its own finalizers', saidObject('h1', { ...clusters, ...update }, changed({ metadata: { finalizers: [] } }))),
    h1(
      'its own lease duration',
      saidObject('h1', { ...clusters, ...update }, changed({ spec: { leaseDurationSeconds: 99_999 } })),
    ),
    h1('its own deletion', saidObject('h1', { ...clusters, ...remove }, own)),
    h1('the victim’s deletion', saidObject('h2', { ...clusters, ...remove }, cluster)),
    h1(
      'a request labelled for the victim',
      saidObject('h1', { ...csrs, ...create }, csr('h2', 'h1-x', { label: 'h2' })),
    ),
    h1('a request in the victim’s name', saidObject('h2', { ...csrs, ...create }, csr('h2', 'h2-x'))),
    h1('a request without a label', saidObject('h1', { ...csrs, ...create }, csr('h1', 'h1-x', { label: undefined }))),
    h1('a request with a name that the victim would use', saidObject('h1', { ...csrs, ...create }, csr('h1', 'h2-x'))),
    h1(
      'a certificate for the API server',
      saidObject('h1', { ...csrs, ...create }, csr('h1', 'h1-x', { signerName: signer.kubeApiServerClient })),
    ),
    h1(
      'a certificate of a kubelet',
      saidObject(
        'h1',
        { ...csrs, ...create },
        csr('h1', 'h1-x', { signerName: 'kubernetes.io/kube-apiserver-client-kubelet' }),
      ),
    ),
    h1(
      'a serving certificate of a kubelet, for an add-on',
      saidObject(
        'h1',
        { ...csrs, ...create },
        csr('h1', 'addon-h1-x', { signerName: 'kubernetes.io/kubelet-serving', addOn: 'metrics' }),
      ),
    ),
    h1(
      'an agent’s certificate for an add-on',
      saidObject('h1', { ...csrs, ...create }, csr('h1', 'addon-h1-x', { addOn: 'metrics' })),
    ),
    h1(
      'a certificate of an add-on that there is not',
      saidObject('h1', { ...csrs, ...create }, csr('h1', 'addon-h1-x', { addOn: 'none', signerName: 'x.io/y' })),
    ),
    h1('approval of its own request', saidObject('h1', { ...csrs, ...update }, csr('h1', 'h1-x'))),
    h1('the status of a request', saidObject('h1', { ...csrs, ...report }, csr('h1', 'h1-x'))),
    h1('the victim’s lease in its own name', saidObject('h1', { ...leases, ...update }, lease('h2'))),
    h1('the victim’s lease', saidObject('h2', { ...leases, ...update }, lease('h2'))),
    h1('another lease in its namespace', saidObject('h1', { ...leases, ...update }, lease('h1', 'other'))),
    h1(
      'the lease of the hub’s leader',
      saidObject('h1', { ...leases, ...update }, lease('open-cluster-management-hub', 'lanyard-hub')),
    ),
    h1('a lease that is created', saidObject('h1', { ...leases, ...create }, lease('h1'))),
    h1('a lease without a spec', saidObject('h1', { ...leases, ...update }, { metadata: lease('h1').metadata })),
    h1('an event in the victim’s namespace', saidObject('h1', { ...events, ...create }, kubeEvent('h2'))),
    h1('an event in kube-system', saidObject('h1', { ...events, ...create }, kubeEvent('kube-system'))),
    h1('an event in the victim’s name', saidObject('h2', { ...events, ...create }, kubeEvent('h2'))),
    h1('an event of the victim that goes on', saidObject('h1', { ...events, ...update }, kubeEvent('h2'))),
    h1('the victim’s add-on in its own name', saidObject('h1', { dataType: dataType.addOns, ...report }, addOn)),
    h1('the victim’s add-on', saidObject('h2', { dataType: dataType.addOns, ...report }, addOn)),
    h1(
      'the victim’s add-on in the earlier version',
      saidObject('h1', { dataType: dataType.addOnsAlpha, ...report }, addOn),
    ),
    h1('the spec of an add-on', saidObject('h1', { dataType: dataType.addOns, ...update }, addOn)),
    h1('an add-on that is created', saidObject('h1', { dataType: dataType.addOns, ...create }, addOn)),
    h1('the status of the victim’s work', status({ resourceId: workUid }, 'h2')),
    h1(
      'the status of the victim’s work, whose metadata it shows',
      status({ resourceId: workUid, metadata: { name: 'w', namespace: 'h2' } }),
    ),
    h1('the spec of a work', said('h1', { ...works, ...update, resourceId: workUid, data: { manifests: [] } })),
    h1('a work that is created', said('h2', { ...works, ...create, resourceId: 'x', data: { manifests: [] } })),
    h1('a work that is deleted', said('h1', { ...works, ...remove, resourceId: workUid })),
    h1('the status of no work', status({})),
    h1('a status that is none', status({ resourceId: workUid, data: { conditions: 'all' } })),
    h1('a token of the victim', token('h2', 'default')),
    h1('a token in kube-system', token('kube-system', 'default')),
    h1('a token of an account in its own namespace', token('h1', 'default')),
    h1('a token without an id', token('h1', 'default', '')),
    h1('the victim’s list', said('h2', { ...works, ...resync, data: { resourceVersions: [] } })),
    h1('a list of secrets', said('h1', { dataType: '.v1.secrets', ...resync, data: { resourceVersions: [] } })),
    h1('a list that is none', said('h1', { ...leases, ...resync, data: { resourceVersions: [{ resourceID: 5 }] } })),
    h1('a secret that is created', saidObject('h1', { dataType: 'core.v1.secrets', ...create }, fresh('h1'))),
    h1(
      'an event without a cluster',
      attributed(saidObject('h1', { ...leases, ...update }, lease('h1')), [attribute.cluster, '']),
    ),
    h1(
      'an event whose cluster is a number',
      attributed(saidObject('h1', { ...leases, ...update }, lease('h1')), [attribute.cluster, 1]),
    ),
    h1('an event without a type', { ...saidObject('h1', { ...leases, ...update }, lease('h1')), type: '' }),
    h1('an event whose payload is no JSON', { ...saidObject('h1', { ...leases, ...update }, lease('h1')), data: '{' }),
    h1('an event whose payload is a list', said('h1', { ...leases, ...update, data: [] })),
    h1('an event whose payload is null', said('h1', { ...leases, ...update, data: null })),
    h1('an event without a payload', said('h1', { ...leases, ...update })),
    h1(
      'a name that is an object',
      said('h1', { ...leases, ...update, data: { metadata: { name: { a: 1 }, namespace: 'h1' }, spec: {} } }),
    ),
    h1(
      'a name that leads elsewhere',
      saidObject(
        'h1',
        { dataType: dataType.addOns, ...report },
        { metadata: { name: '../../../secrets', namespace: 'h1', resourceVersion: '1' } },
      ),
    ),
    h1('a payload that reaches for prototypes', {
      ...said('h1', { ...leases, ...update }),
      data: '{"__proto__":{"admin":true},"metadata":{"__proto__":{"name":"managed-cluster-lease","namespace":"h1"}}}',
    }),
    raw('a request that holds nothing', 'Publish', frame(Buffer.alloc(0))),
    raw('a request without a message', 'Publish', Buffer.alloc(0)),
    raw('half a message', 'Publish', frame(good).subarray(0, 40)),
    raw('two messages', 'Publish', Buffer.concat([frame(good), frame(good)])),
    raw('bytes that are no message', 'Publish', frame(Buffer.from('not a message at all'))),
    raw('a compressed message', 'Publish', Buffer.from([1, 0, 0, 0, 1, 1])),
    raw('a message that says that it has 4 GiB', 'Publish', Buffer.from([0, 255, 255, 255, 255, 1])),
    raw('a message of 3 MiB', 'Publish', frame(Buffer.alloc(3 << 20, 1))),
    raw(
      'a subscription of 1 MiB',
      'Subscribe',
      frame(encodeSubscription({ source: 'x'.repeat(1 << 20), clusterName: 'h1', dataType: dataType.leases })),
    ),
    raw('another method', 'Steal', frame(good)),
    ...Object.values(dataType).map((of): Attack => ({
      title: `subscription to the victim’s ${of}`,
      by: 'h1',
      subscribe: { clusterName: 'h2', dataType: of },
    })),
    { title: 'subscription to events', by: 'h1', subscribe: { clusterName: 'h1', dataType: dataType.events } },
    { title: 'subscription to secrets', by: 'h1', subscribe: { clusterName: 'h1', dataType: 'core.v1.secrets' } },
    { title: 'subscription to everybody', by: 'h1', subscribe: { clusterName: '', dataType: dataType.leases } },
    { title: 'subscription to any cluster', by: 'h1', subscribe: { clusterName: '*', dataType: dataType.leases } },
    bootstrap(
      'a cluster that accepts itself',
      saidObject('h8', { ...clusters, ...create }, fresh('h8', { hubAcceptsClient: true })),
    ),
    bootstrap(
      'a cluster with the namespace of the system',
      saidObject('kube-system', { ...clusters, ...create }, fresh('kube-system')),
    ),
    bootstrap('a cluster with a name that is none', saidObject('A/B', { ...clusters, ...create }, fresh('A/B'))),
    bootstrap('the status of a cluster that has joined', saidObject('h2', { ...clusters, ...report }, cluster)),
    bootstrap('the spec of a cluster that has joined', saidObject('h2', { ...clusters, ...update }, cluster)),
    bootstrap('the lease of a cluster that has joined', saidObject('h2', { ...leases, ...update }, lease('h2'))),
    bootstrap(
      'a certificate of a joined cluster’s add-on',
      saidObject('h2', { ...csrs, ...create }, csr('h2', 'addon-h2-x', { addOn: 'metrics', signerName: 'x.io/y' })),
    ),
    {
      title: 'bootstrap subscription to works',
      by: 'bootstrap',
      subscribe: { clusterName: 'h2', dataType: dataType.manifestBundles },
    },
    ...(['nobody', 'a stranger’s token', 'a bad token', 'expired', 'foreign', 'two clusters'] as const).map(
      (by): Attack => ({
        title: `a lease by ${by}`,
        by,
        event: saidObject('h1', { ...leases, ...update }, lease('h1')),
      }),
    ),
  ]
}
