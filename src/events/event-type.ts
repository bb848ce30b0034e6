/** What events are about: `<group>.<version>.<resource>`, exactly as the field spells them. */
export const dataType = {
  managedClusters: 'cluster.open-cluster-management.io.v1.managedclusters',
  certificateSigningRequests: 'certificates.k8s.io.v1.certificatesigningrequests',
  addOns: 'addon.open-cluster-management.io.v1beta1.managedclusteraddons',
  addOnsAlpha: 'addon.open-cluster-management.io.v1alpha1.managedclusteraddons',
  leases: 'coordination.k8s.io.v1.leases',
  events: 'events.k8s.io.v1.events',
  /** ManifestWorks: what is wanted travels one way, how it went the other. */
  manifestBundles: 'io.open-cluster-management.works.v1alpha1.manifestbundles',
  tokenRequests: 'authentication.k8s.io.v1.tokenrequests',
} as const
export type DataType = (typeof dataType)[keyof typeof dataType]

export const actions = [
  'create_request',
  'update_request',
  'delete_request',
  'watch_request',
  'resync_request',
  'resync_response',
] as const
export type Action = (typeof actions)[number]

/** `spec` travels from the hub to agents, `status` from agents to the hub; what an agent creates is `spec` as well. */
export type Side = 'spec' | 'status'

export interface EventType {
  /** Any text: whether it is served is another question. */
  dataType: string
  side: Side
  action: Action
}

export const typeOf = ({ dataType, side, action }: EventType): string => `${dataType}.${side}.${action}`

// Longer than any that there is, and short enough to look for dots in.
const longestType = 300

/** Undefined when the text has not that form. */
export const parseType = (text: string): EventType | undefined => {
  if (text.length > longestType) return undefined
  const [, dataType, side, action] = /^([^]+\.[^.]+\.[^.]+)\.(spec|status)\.([a-z_]+)$/.exec(text) ?? []
  return dataType && actions.includes(action as Action)
    ? { dataType, side: side as Side, action: action as Action }
    : undefined
}

/** Says only that the connection lives, and with the attribute `ce-resync` also that a resync is complete. */
export const heartbeatType = 'io.open-cluster-management.cloudevents.heartbeat'

/** Names of attributes. All but the content type have the prefix of the binary mode. */
export const attribute = {
  contentType: 'contenttype',
  time: 'ce-time',
  cluster: 'ce-clustername',
  /** Always there, and mostly empty. */
  originalSource: 'ce-originalsource',
  /** The UID of works and of token requests, the name of other objects. */
  resourceId: 'ce-resourceid',
  /** The generation of works, as a number; the resourceVersion of other objects, as a string. */
  resourceVersion: 'ce-resourceversion',
  /** Of status updates of works: later ones are greater. */
  sequenceId: 'ce-sequenceid',
  /** The object is being deleted, or is gone. */
  deletionTimestamp: 'ce-deletiontimestamp',
  statusHash: 'ce-statushash',
  /** The metadata of a work, as JSON. */
  metadata: 'ce-metadata',
  /** Ours: on a heartbeat, the id of the resync request that has been answered in full by now. */
  resync: 'ce-resync',
} as const
