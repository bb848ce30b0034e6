import { expand, fieldOf } from './expand.ts'
import type { Container, EnvVar, KeyRef, Pod } from './kinds.ts'
import { contentOf, NotThereYet, type Sources } from './sources.ts'

/** The environment of a container: first `envFrom`, then `env` in its order, each able to use those before it. */
export const environmentOf = (
  container: Container,
  { pod, address, sources }: { pod: Pod; address: string; sources: Sources },
): Record<string, string> => {
  const namespace = pod.metadata.namespace!
  const variables: Record<string, string> = {}
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const kind = secretRef ? 'secret' : 'configMap'
    const ref = secretRef ?? configMapRef!
    const content = contentOf(sources, kind, { namespace, name: ref.name, optional: ref.optional })
    for (const [key, value] of content ?? []) variables[prefix + key] = value.toString()
  }
  const fromKey = (kind: 'secret' | 'configMap', { name, key, optional }: KeyRef): string | undefined => {
    const value = contentOf(sources, kind, { namespace, name, optional })?.get(key)
    if (!value && !optional) throw new NotThereYet(`${kind.toLowerCase()} "${name}" has no key "${key}"`)
    return value?.toString()
  }
  const valueOf = ({ value = '', valueFrom }: EnvVar): string | undefined => {
    if (!valueFrom) return expand(value, variables)
    if (valueFrom.fieldRef) return fieldOf(pod, valueFrom.fieldRef.fieldPath, address)
    if (valueFrom.secretKeyRef) return fromKey('secret', valueFrom.secretKeyRef)
    if (valueFrom.configMapKeyRef) return fromKey('configMap', valueFrom.configMapKeyRef)
    throw new Error(`the runner does not know this source of a variable: ${Object.keys(valueFrom).join()}`)
  }
  for (const one of container.env ?? []) {
    const value = valueOf(one)
    if (value !== undefined) variables[one.name] = value
  }
  return variables
}
