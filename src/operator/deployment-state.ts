import { keyOf } from '../kube/index.ts'
import type { Deployment } from './objects.ts'

/** Whether there are as many available pods as there should be, and what is the matter if not. */
export const availability = (deployment: Deployment): { available: boolean; message: string } => {
  const { replicas } = deployment.spec
  const { availableReplicas = 0, conditions = [] } = deployment.status ?? {}
  const troubles = conditions.filter(
    ({ type, status }) =>
      (type === 'ReplicaFailure' && status === 'True') || (type === 'Progressing' && status === 'False'),
  )
  const why = troubles.map(({ message }) => message).filter(Boolean)
  const where = `Deployment ${keyOf(deployment)}`
  const next = `look at: kubectl describe pods -n ${deployment.metadata.namespace} -l app=${deployment.spec.selector.matchLabels?.['app']}`
  return {
    available: availableReplicas >= replicas && replicas > 0,
    message: [`${where} has ${availableReplicas} of ${replicas} pods available`, ...why, next].join('; '),
  }
}

/** Whether pods of an older template still run, or those of the newest are not all there. */
export const isRolling = ({ metadata, spec, status }: Deployment): boolean =>
  (status?.observedGeneration ?? 0) < (metadata.generation ?? 0) ||
  (status?.updatedReplicas ?? 0) < spec.replicas ||
  (status?.replicas ?? 0) > (status?.updatedReplicas ?? 0) ||
  (status?.availableReplicas ?? 0) < (status?.updatedReplicas ?? 0)
