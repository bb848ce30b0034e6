import type { LabelSelector } from './objects.ts'

type Expression = NonNullable<LabelSelector['matchExpressions']>[number]

/** Whether labels fit a selector. An empty selector selects everything, an absent one nothing, as everywhere in Kubernetes. */
export const matchesSelector = (
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> = {},
): boolean => {
  if (!selector) return false
  const { matchLabels = {}, matchExpressions = [] } = selector
  for (const key in matchLabels) if (valueOf(labels, key) !== matchLabels[key]) return false
  return matchExpressions.every((expression) => holds(expression, valueOf(labels, expression.key)))
}

// Labels come from anybody: `constructor` is a label key like any other.
const valueOf = (labels: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(labels, key) ? labels[key] : undefined

const holds = ({ operator, values = [] }: Expression, value: string | undefined): boolean => {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn': // also when the label is absent
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default: // an operator of a later version: selecting too little is the safe mistake
      return false
  }
}
