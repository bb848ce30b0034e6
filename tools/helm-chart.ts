/** A Helm chart from the objects that an installation is made of: what stands for a value in them becomes a template. */
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { KubeObject } from '../src/kube/index.ts'
import { namespace, pullSecret, role } from '../src/operator/contract.ts'
import { imageOf, ownVersion, type ManagedInstallOptions } from '../src/operator/index.ts'

export const yamlOf = (object: unknown): string => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })

export interface Chart {
  name: string
  about: string
  install: (options: ManagedInstallOptions) => KubeObject[]
  /** What Helm prints after an installation. */
  notes: string
  /** Whether it has the value `workRole`. */
  appliesWorks: boolean
}

/** Stand in for values while the objects are made. */
const marks = {
  image: 'LANYARD-IMAGE',
  replicas: 987_654,
  sizing: { type: 'ResourceRequirement', resourceRequirements: { requests: { 'LANYARD-RESOURCE': '1' } } },
  pullCredentials: 'LANYARD-CREDENTIALS',
  workRole: 'LANYARD-WORK-ROLE',
}

/** The values of a chart, as `values.yaml` has them. */
const valuesOf = async ({ appliesWorks }: Chart) => ({
  image: imageOf({ version: await ownVersion() }),
  pullSecret: false,
  replicas: 1,
  resources: { requests: { cpu: '20m', memory: '96Mi' } },
  ...(appliesWorks && { workRole: role.work }),
})

/** A value that we do not know is a misspelt one, and would be passed over in silence. */
const schemaOf = ({ appliesWorks }: Chart) => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  additionalProperties: false,
  required: ['image', 'replicas'],
  properties: {
    image: {
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@-]*[A-Za-z0-9]$',
      description: 'The whole name of the image, also of what the operator runs',
    },
    pullSecret: {
      type: 'boolean',
      description: `Whether images are pulled with the Secret ${pullSecret}, which you make in the namespace ${namespace.operator}`,
    },
    replicas: { type: 'integer', minimum: 0, description: 'Of the operator; one works, the others wait' },
    resources: { type: ['object', 'null'], description: 'Of the operator: requests and limits' },
    ...(appliesWorks && {
      workRole: {
        type: 'string',
        pattern: '^[A-Za-z0-9][A-Za-z0-9.:-]*$',
        description: 'The ClusterRole that works are applied with; the operator may bind no other',
      },
    }),
    global: { description: 'Where this is a part of another chart, Helm adds it' },
  },
})

// Our objects name their namespace. In another one, Helm would install those without any, and fail at the rest.
const namespaceCheck = `{{- if ne .Release.Namespace "${namespace.operator}" }}
{{- fail "this chart belongs into the namespace ${namespace.operator}: add -n ${namespace.operator} --create-namespace" }}
{{- end }}
`

const templateOf = (object: KubeObject): string =>
  yamlOf(object)
    .replaceAll(marks.image, '{{ .Values.image }}')
    .replaceAll(marks.workRole, '{{ .Values.workRole }}')
    .replaceAll(String(marks.replicas), '{{ .Values.replicas }}')
    .replace(/resources:\n\s+requests:\n\s+LANYARD-RESOURCE: "1"\n/, 'resources: {{ toJson .Values.resources }}\n')
    .replace(/^ *imagePullSecrets:\n.*\n/m, '{{- if .Values.pullSecret }}\n$&{{- end }}\n')

const fileNameOf = ({ kind, metadata }: KubeObject): string => {
  const where = metadata.namespace ? `${metadata.namespace}-` : ''
  return `${kind}-${where}${metadata.name}.yaml`.toLowerCase().replaceAll(':', '-')
}

const isCrd = ({ kind }: KubeObject): boolean => kind === 'CustomResourceDefinition'
/** Somebody else makes it: the namespace `helm install --create-namespace`, which refuses one that is there; the secret a person. */
const isGiven = ({ kind, metadata }: KubeObject): boolean =>
  (kind === 'Namespace' && metadata.name === namespace.operator) || (kind === 'Secret' && metadata.name === pullSecret)

/** Path in the chart's folder, and text, of its files. */
export const chartFiles = async (chart: Chart): Promise<[string, string][]> => {
  const { name, about, install, notes, appliesWorks } = chart
  const version = await ownVersion()
  const objects = install({ ...marks, workRole: appliesWorks ? marks.workRole : undefined })
  return [
    ['Chart.yaml', yamlOf({ apiVersion: 'v2', name, description: about, version, appVersion: version })],
    ['values.yaml', yamlOf(await valuesOf(chart))],
    ['values.schema.json', `${JSON.stringify(schemaOf(chart), null, 2)}\n`],
    [join('templates', 'NOTES.txt'), notes],
    [join('templates', 'check-namespace.yaml'), namespaceCheck],
    ...objects
      .filter((object) => !isGiven(object))
      .map((object): [string, string] =>
        isCrd(object)
          ? [join('crds', fileNameOf(object)), yamlOf(object)]
          : [join('templates', fileNameOf(object)), templateOf(object)],
      ),
  ]
}
