import { array, intOrString, map, object, string } from './schema.ts'

/** What a container asks for and may use, as in a pod. */
export const resourceRequirements = (description: string) =>
  object(description, {
    'limits?': map('The most it may use.', intOrString()),
    'requests?': map('What is set aside for it.', intOrString()),
  })

/** How the pods that the operator starts are sized. */
export const resourceRequirement = object('How the pods are sized.', {
  'type?': string('Default, no requests at all, or what resourceRequirements says.', {
    enum: ['Default', 'BestEffort', 'ResourceRequirement'],
    default: 'Default',
  }),
  'resourceRequirements?': resourceRequirements('Used with type ResourceRequirement.'),
})

/** The same for chosen containers of an add-on's workloads. */
export const containerResourceRequirements = array(
  'Resources of containers; the last entry that matches a container wins.',
  object('Resources of the containers that match.', {
    containerID: string('workloads:name:container, where each part may be "*".', {
      pattern: '^(deployments|daemonsets|statefulsets|\\*):[^:]+:[^:]+$',
    }),
    resources: resourceRequirements('What they get.'),
  }),
  { keys: ['containerID'] },
)
