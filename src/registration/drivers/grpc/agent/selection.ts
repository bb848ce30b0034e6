import type { KubeObject } from '../../../../kube/index.ts'

export interface Selectors {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
}

/** The name that a field selector asks for. */
export const nameIn = (fieldSelector: string | undefined): string | undefined =>
  fieldSelector === undefined ? undefined : /^metadata\.name=([^,=]+)$/.exec(fieldSelector)?.[1]

/** Whether an object is asked for. Only what agents use is understood; anything else would be answered wrongly, so it is an error. */
export const selection = ({
  namespace,
  labelSelector,
  fieldSelector,
}: Selectors): ((object: KubeObject) => boolean) => {
  const name = nameIn(fieldSelector)
  if (fieldSelector && name === undefined)
    throw new Error(`field selector ${fieldSelector} is not understood over gRPC`)
  const labels = (labelSelector ?? '').split(',').filter(Boolean).map(requirement)
  return ({ metadata }) =>
    (namespace === undefined || metadata.namespace === namespace) &&
    (name === undefined || metadata.name === name) &&
    labels.every((holds) => holds(metadata.labels ?? {}))
}

const requirement = (text: string): ((labels: Readonly<Record<string, string>>) => boolean) => {
  const [, not, key, operator, value] = /^(!?)([^!=\s()]+)(?:(==?|!=)([^!=\s()]*))?$/.exec(text) ?? []
  if (key === undefined || (not && operator)) throw new Error(`label selector ${text} is not understood over gRPC`)
  if (not) return (labels) => !Object.hasOwn(labels, key)
  if (!operator) return (labels) => Object.hasOwn(labels, key)
  const equals = (labels: Readonly<Record<string, string>>): boolean =>
    Object.hasOwn(labels, key) && labels[key] === value
  return operator === '!=' ? (labels) => !equals(labels) : equals
}
