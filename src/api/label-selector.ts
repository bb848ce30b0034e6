import { array, map, object, string } from './schema.ts'

/** Kubernetes' own label selector, with its operators spelled out so that a typo is refused at once. */
export const labelSelector = (description: string) =>
  object(
    description,
    {
      'matchLabels?': map('Labels that must have exactly these values.', string(undefined, { maxLength: 63 }), {
        maxProperties: 64,
      }),
      'matchExpressions?': array(
        'Requirements that must all hold.',
        object('One requirement on one label.', {
          key: string('The label.', { maxLength: 317 }),
          operator: string('How it is compared.', { enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'] }),
          'values?': array(
            'What it is compared with; none for Exists and DoesNotExist.',
            string(undefined, { maxLength: 63 }),
            {
              maxItems: 256,
            },
          ),
        }),
        { maxItems: 64 },
      ),
    },
    { atomic: true },
  )
