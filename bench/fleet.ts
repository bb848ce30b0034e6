import { installCrds, ManagedCluster } from '../src/api/index.ts'
import type { Client } from '../src/kube/index.ts'
import { inParallel } from '../src/runtime/index.ts'
import { progress } from './measure.ts'

/** The name of a cluster of the fleet. */
export const nameOf = (index: number): string => `cluster-${String(index).padStart(5, '0')}`

const regions = ['eu-central-1', 'eu-west-1', 'us-east-1', 'us-west-2', 'ap-southeast-1']
const apiVersion = 'cluster.open-cluster-management.io/v1'
const since = '2026-01-15T08:30:00Z'
// As long as a small real certificate in base64.
const caBundle = Buffer.from('MIIBdzCCAR2gAwIBAgIBADAKBggqhkjOP'.repeat(17)).toString('base64')

const conditions = [
  ['HubAcceptedManagedCluster', 'HubClusterAdminAccepted', 'Accepted by hub cluster admin'],
  ['ManagedClusterJoined', 'ManagedClusterJoined', 'Managed cluster joined'],
  ['ManagedClusterConditionAvailable', 'ManagedClusterAvailable', 'Managed cluster is available'],
  ['HubClientCertificateRotated', 'ClientCertificateUpdated', 'client certificate rotated'],
  ['ManagedClusterClockSynced', 'ManagedClusterClockSynced', 'The clock of the managed cluster is synced'],
] as const

/** A cluster as a real hub has it: 6 KB of JSON, of which 2.7 KB are the notes of two field managers. */
const clusterAt = (index: number): ManagedCluster => {
  const name = nameOf(index)
  const region = regions[index % regions.length]!
  const metadata = {
    name,
    labels: {
      'cluster.open-cluster-management.io/clusterset': `team-${index % 40}`,
      'feature.open-cluster-management.io/addon-work-manager': 'available',
      'feature.open-cluster-management.io/addon-managed-serviceaccount': 'available',
      'feature.open-cluster-management.io/addon-cluster-proxy': 'available',
      cloud: 'Amazon',
      vendor: 'EKS',
      region,
      environment: index % 3 ? 'production' : 'staging',
      clusterID: `7c1d09e2-4b57-4f7e-9d0a-${String(index).padStart(12, '0')}`,
    },
    annotations: {
      'agent.open-cluster-management.io/managed-cluster-arn': `arn:aws:eks:${region}:123456789012:cluster/${name}`,
      'agent.open-cluster-management.io/managed-cluster-iam-role-suffix': '4f1a8cbf7e3d2b9c0a5d6e8f7a9b1c2d',
      'open-cluster-management/created-via': 'other',
    },
    finalizers: [
      'cluster.open-cluster-management.io/api-resource-cleanup',
      'cluster.open-cluster-management.io/resource-cleanup',
    ],
  }
  const spec = {
    hubAcceptsClient: true,
    leaseDurationSeconds: 60,
    managedClusterClientConfigs: [{ url: `https://${name}.gr7.${region}.eks.amazonaws.com`, caBundle }],
  }
  const status = {
    conditions: conditions.map(([type, reason, message]) => ({
      type,
      status: 'True' as const,
      reason,
      message,
      lastTransitionTime: since,
      observedGeneration: 2,
    })),
    version: { kubernetes: 'v1.36.3-eks-5d4a308' },
    capacity: { cpu: '96', memory: '395698384Ki', pods: '1160', 'ephemeral-storage': '513024Mi', 'hugepages-2Mi': '0' },
    allocatable: {
      cpu: '94',
      memory: '377898384Ki',
      pods: '1160',
      'ephemeral-storage': '472814Mi',
      'hugepages-2Mi': '0',
    },
    clusterClaims: [
      { name: 'id.k8s.io', value: name },
      { name: 'kubeversion.open-cluster-management.io', value: 'v1.36.3-eks-5d4a308' },
      { name: 'platform.open-cluster-management.io', value: 'AWS' },
      { name: 'product.open-cluster-management.io', value: 'EKS' },
      { name: 'region.open-cluster-management.io', value: region },
      { name: 'controlplanetopology.openshift.io', value: 'HighlyAvailable' },
      { name: 'hostedcluster.hypershift.openshift.io', value: 'false' },
    ],
  }
  const { name: _, ...owned } = metadata
  const managedFields = [
    managedBy('registration-agent', { metadata: owned, spec }),
    managedBy('registration-hub', { status }),
  ]
  return { metadata: { ...metadata, managedFields }, spec, status }
}

/** What the server notes about who wrote which fields. */
const managedBy = (manager: string, fields: object) => ({
  apiVersion,
  fieldsType: 'FieldsV1',
  fieldsV1: notesOf(fields),
  manager,
  operation: 'Update',
  time: since,
})

const notesOf = (value: object): object =>
  Object.fromEntries(Object.entries(value).map(([field, below]) => [`f:${field}`, noteOf(field, below)]))

// Atomic lists have one note; conditions have one for each type, and finalizers for each value.
const noteOf = (field: string, value: unknown): object => {
  if (field === 'conditions')
    return Object.fromEntries(
      (value as { type: string }[]).map((one) => [`k:{"type":"${one.type}"}`, { '.': {}, ...notesOf(one) }]),
    )
  if (field === 'finalizers') return Object.fromEntries((value as string[]).map((one) => [`v:"${one}"`, {}]))
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? notesOf(value) : {}
}

/**
 * Installs the kind and creates the clusters. Each takes one request instead of two: here the kind has no status subresource,
 * and the notes that two writers would leave are given. Who reads sees no difference.
 */
export const createFleet = async (client: Client, size: number): Promise<void> => {
  const crd = ManagedCluster.crd({ conversion: 'none' })
  for (const version of crd.spec.versions) Reflect.deleteProperty(version, 'subresources')
  await installCrds(client, [crd])
  const clusters = client.of(ManagedCluster)
  let done = 0
  const create = async (index: number): Promise<void> => {
    await clusters.create(clusterAt(index))
    if (++done % 1000 === 0) progress(`created ${done} of ${size} ManagedClusters`)
  }
  await inParallel(
    32,
    Array.from({ length: size }, (_, index) => () => create(index)),
  )
}
