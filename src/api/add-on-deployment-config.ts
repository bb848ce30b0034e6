import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { nodePlacement } from './node-placement.ts'
import { containerResourceRequirements } from './resource-requirements.ts'
import { array, bytes, object, string } from './schema.ts'

const schema = () =>
  object('How add-ons are deployed on managed clusters.', {
    'spec?': object('The settings.', {
      'customizedVariables?': array(
        'Values for the templates of the add-on.',
        object('One value.', {
          name: string('Its name in the templates.', { maxLength: 255, pattern: '^[a-zA-Z_][_a-zA-Z0-9]*$' }),
          'value?': string('The value.', { maxLength: 1024 }),
        }),
        { keys: ['name'] },
      ),
      'nodePlacement?': nodePlacement,
      'registries?': array(
        'Images that come from elsewhere.',
        object('One replacement.', {
          mirror: string('Where images come from instead.'),
          'source?': string('Which images; all if empty.'),
        }),
      ),
      'proxyConfig?': object('Proxy that the add-on agent uses.', {
        'httpProxy?': string('For http requests.'),
        'httpsProxy?': string('For https requests.'),
        'caBundle?': bytes('Certificates that the proxy is checked against.'),
        'noProxy?': string('Hosts that need no proxy, with commas.'),
      }),
      'agentInstallNamespace?': string('Namespace of the agent on the managed cluster.', {
        default: 'open-cluster-management-agent-addon',
        maxLength: 63,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      }),
      'resourceRequirements?': containerResourceRequirements,
    }),
  })

/** How add-ons are deployed on managed clusters. Both versions have one shape, so no webhook converts them. */
export const AddOnDeploymentConfig = defineKind({
  group: group.addon,
  kind: 'AddOnDeploymentConfig',
  plural: 'addondeploymentconfigs',
  scope: 'Namespaced',
  stored: 'v1beta1',
  versions: { v1alpha1: { schema }, v1beta1: { schema } },
})

/** An AddOnDeploymentConfig as it is on the hub. */
export type AddOnDeploymentConfig = ObjectOf<typeof AddOnDeploymentConfig>
