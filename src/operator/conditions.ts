import { conditionType } from '../api/index.ts'
import { condition } from '../runtime/index.ts'

/** Conditions of a ClusterManager, with the words that other tools look for. */
export const Hub = {
  Applied: condition(conditionType.clusterManager.applied, {
    applied: { status: 'True', reason: 'ClusterManagerApplied', message: 'All that the hub needs is in place' },
    crdFailed: { status: 'False', reason: 'CRDApplyFailed' },
    failed: { status: 'False', reason: 'RuntimeResourceApplyFailed' },
    refused: { status: 'False', reason: 'SpecRefused' },
    second: { status: 'False', reason: 'AnotherClusterManager' },
    waiting: { status: 'False', reason: 'ObjectsRemain' },
    removing: { status: 'False', reason: 'Removing' },
  }),
  Progressing: condition(conditionType.clusterManager.progressing, {
    rolling: { status: 'True', reason: 'ClusterManagerDeploymentRolling' },
    upToDate: { status: 'False', reason: 'ClusterManagerUpToDate', message: 'The hub runs as it should' },
  }),
  RegistrationDegraded: condition(conditionType.clusterManager.registrationDegraded, {
    functional: { status: 'False', reason: 'RegistrationFunctional', message: 'The hub is available' },
    unavailable: { status: 'True', reason: 'UnavailableRegistrationPod' },
    missing: { status: 'True', reason: 'GetRegistrationDeploymentFailed' },
  }),
} as const

const degraded = (type: string) =>
  condition(type, {
    functional: { status: 'False', reason: 'DeploymentsFunctional', message: 'The agent is available' },
    unavailable: { status: 'True', reason: 'UnavailablePods' },
    missing: { status: 'True', reason: 'GetDeploymentFailed' },
  })

/** Conditions of a Klusterlet. */
export const Agent = {
  Applied: condition(conditionType.klusterlet.applied, {
    applied: { status: 'True', reason: 'KlusterletApplied', message: 'All that the agent needs is in place' },
    crdFailed: { status: 'False', reason: 'CRDApplyFailed' },
    managedFailed: { status: 'False', reason: 'ManagedClusterResourceApplyFailed' },
    failed: { status: 'False', reason: 'KlusterletApplyFailed' },
    refused: { status: 'False', reason: 'SpecRefused' },
    removing: { status: 'False', reason: 'Removing' },
  }),
  ReadyToApply: condition(conditionType.klusterlet.readyToApply, {
    prepared: { status: 'True', reason: 'KlusterletPrepared', message: 'The managed cluster can be reached' },
    failed: { status: 'False', reason: 'KlusterletPrepareFailed' },
  }),
  Available: condition(conditionType.klusterlet.available, {
    available: { status: 'True', reason: 'KlusterletAvailable', message: 'The agent is available' },
    none: { status: 'False', reason: 'NoAvailablePods' },
    missing: { status: 'False', reason: 'GetDeploymentFailed' },
  }),
  RegistrationDegraded: degraded(conditionType.klusterlet.registrationDegraded),
  WorkDegraded: degraded(conditionType.klusterlet.workDegraded),
  HubConnectionDegraded: condition(conditionType.klusterlet.hubConnectionDegraded, {
    functional: { status: 'False', reason: 'HubConnectionFunctional' },
    bootstrapMissing: { status: 'True', reason: 'BootstrapSecretMissing,HubKubeConfigSecretMissing' },
    waiting: { status: 'True', reason: 'BootstrapSecretFunctional,HubKubeConfigMissing' },
    expired: { status: 'True', reason: 'BootstrapSecretFunctional,HubKubeConfigUnauthorized' },
  }),
} as const

/** On both kinds. */
export const ValidFeatureGates = condition(conditionType.clusterManager.validFeatureGates, {
  valid: { status: 'True', reason: 'FeatureGatesAllValid', message: 'Feature gates are all valid' },
  invalid: { status: 'False', reason: 'InvalidFeatureGatesExisting' },
})

/** On both kinds: whether every field that somebody set has an effect. What has none is named, with why. */
export const SpecHonored = condition('SpecHonored', {
  all: { status: 'True', reason: 'AllFieldsHonored', message: 'Every field that is set has its effect' },
  some: { status: 'False', reason: 'FieldsWithoutEffect' },
})
