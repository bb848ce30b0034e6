import { array, integer, map, object, string } from './schema.ts'

const toleration = object('A taint that the pods put up with.', {
  'key?': string('The taint; empty with Exists means every taint.'),
  'operator?': string('How the value is compared; Equal if absent.', { enum: ['Exists', 'Equal'] }),
  'value?': string('The value of the taint.'),
  'effect?': string('The effect; empty means all.', { enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] }),
  'tolerationSeconds?': integer('How long to stay once the taint appears, with NoExecute.', { format: 'int64' }),
})

/** On which nodes pods may run. */
export const nodePlacement = object('On which nodes the pods may run.', {
  'nodeSelector?': map('Labels that the node must have.', string()),
  'tolerations?': array('Taints that the pods put up with.', toleration),
})
