import { label } from './names.ts'
import type { Schema } from './schema.ts'
import type { Column } from './kind.ts'

/** AWS kinds have one shape in every served version, so conversion only changes apiVersion and loses nothing. */
export const awsVersions = <S extends Schema>(schema: () => S, columns?: Column[]) => {
  const version = { schema, ...(columns && { columns }) }
  return { v1alpha3: version, v1alpha4: version, v1beta1: version, v1beta2: version }
}

/** How Cluster API finds the versions that follow its contracts. */
export const contractLabels = {
  'cluster.x-k8s.io/v1alpha3': 'v1alpha3',
  'cluster.x-k8s.io/v1alpha4': 'v1alpha4',
  'cluster.x-k8s.io/v1beta1': 'v1beta1_v1beta2',
}

/** Identities are moved together with what they own. */
export const identityLabels = { ...contractLabels, [label.moveHierarchy]: '' }
