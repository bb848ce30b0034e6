import { labelSelector } from './label-selector.ts'
import { array, nullable, object, string } from './schema.ts'

// CEL sees a null list as absent, but dyn(self) still counts it as a key. So `{list: null, selector: {}}`, which Go
// programs write for `{}`, passes, and a hand-written `{selector: {}}`, which may mean all or none, does not.
const unambiguous = [
  '!has(self.selector)',
  'has(self.list)',
  '(has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0)',
  '(has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)',
  '(dyn(self.selector) == dyn({}) && dyn(self) != dyn({"selector": {}}))',
].join(' || ')

/** Namespaces whose clusters may use an identity. Null and `{}` differ, so null is stored as sent. */
export const allowedNamespaces = nullable(
  object(
    'Namespaces whose clusters may use the identity: absent or null is none, {} is all, else those in list or selector.',
    {
      'list?': nullable(
        array('Namespaces by name; an empty list adds none.', string(undefined, { maxLength: 63 }), { maxItems: 1024 }),
      ),
      'selector?': labelSelector('Namespaces by label.'),
    },
    {
      rules: [
        {
          rule: unambiguous,
          message:
            'an empty selector is ambiguous: write allowedNamespaces: {} for all namespaces, or list: [] for none',
          fieldPath: '.selector',
        },
      ],
    },
  ),
)
