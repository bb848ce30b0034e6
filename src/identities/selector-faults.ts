import type { LabelSelector } from '../kube/index.ts'
import type { Cause } from '../runtime/webhook/index.ts'
import type { AllowedNamespaces } from './permission.ts'

const labelName = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** What Kubernetes would make nothing of in `allowedNamespaces`: names and labels that no namespace can have. */
export const allowedFaults = (allowed: AllowedNamespaces): Cause[] => {
  if (!allowed) return []
  const field = 'spec.allowedNamespaces'
  const { list, selector } = allowed
  return [
    ...(list ?? []).flatMap((name, i) =>
      dnsLabel.test(name)
        ? []
        : [
            {
              field: `${field}.list[${i}]`,
              message: `${JSON.stringify(name)} is no namespace's name; patterns are not understood, use selector for many`,
            },
          ],
    ),
    ...ambiguity(allowed, field),
    ...selectorFaults(selector, `${field}.selector`),
  ]
}

// The schema says the same of an empty selector. Here it is said on hubs whose CRDs are of somebody else.
const ambiguity = ({ list, selector }: NonNullable<AllowedNamespaces>, field: string): Cause[] => {
  if (!selector || list !== undefined) return []
  const { matchLabels, matchExpressions } = selector
  if (Object.keys(matchLabels ?? {}).length > 0 || matchExpressions?.length) return []
  const message = 'an empty selector is ambiguous: write allowedNamespaces: {} for all namespaces, or list: [] for none'
  return [{ field: `${field}.selector`, message }]
}

const selectorFaults = (selector: LabelSelector | undefined, field: string): Cause[] => [
  ...Object.entries(selector?.matchLabels ?? {}).flatMap(([key, value]) => [
    ...keyFaults(key, `${field}.matchLabels`),
    ...valueFaults(value, `${field}.matchLabels[${key}]`),
  ]),
  ...(selector?.matchExpressions ?? []).flatMap(({ key, operator, values = [] }, i) => {
    const at = `${field}.matchExpressions[${i}]`
    const needs = operator === 'In' || operator === 'NotIn'
    return [
      ...keyFaults(key, `${at}.key`),
      ...(needs && values.length === 0 ? [{ field: `${at}.values`, message: `${operator} needs values` }] : []),
      ...(!needs && values.length > 0
        ? [{ field: `${at}.values`, message: `${operator} takes no values: remove them` }]
        : []),
      ...values.flatMap((value, n) => valueFaults(value, `${at}.values[${n}]`)),
    ]
  }),
]

const keyFaults = (key: string, field: string): Cause[] => {
  const slash = key.indexOf('/')
  const [prefix, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)]
  const good = labelName.test(name) && (prefix === undefined || (prefix.length <= 253 && dnsSubdomain.test(prefix)))
  return good
    ? []
    : [{ field, message: `${JSON.stringify(key)} is no label key: write name or prefix.example.com/name` }]
}

const valueFaults = (value: string, field: string): Cause[] =>
  value === '' || labelName.test(value)
    ? []
    : [{ field, message: `${JSON.stringify(value)} is no label value: at most 63 letters, digits, "-", "_" and "."` }]
