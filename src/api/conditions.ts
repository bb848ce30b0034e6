import { array, integer, object, string, time } from './schema.ts'

const fields = {
  type: string('Which aspect.', {
    maxLength: 316,
    pattern:
      '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
  }),
  status: string('Whether it holds.', { enum: ['True', 'False', 'Unknown'] }),
  reason: string('One word for why, for programs.', { minLength: 1, maxLength: 1024 }),
  message: string('Why, and what to do next, for people.', { maxLength: 32768 }),
  lastTransitionTime: time('When the status last changed.'),
  'observedGeneration?': integer('The metadata.generation that was looked at.', { format: 'int64', minimum: 0 }),
}

/** A list of conditions, one of each type, so that several writers can own theirs. */
export const conditions = (description: string) =>
  array(description, object('What was last observed about one aspect.', fields), { keys: ['type'] })

/** The same with the severity that Cluster API reads on infrastructure objects. */
export const severityConditions = (description: string) =>
  array(
    description,
    object('What was last observed about one aspect.', {
      ...fields,
      'severity?': string('How bad a False is.', { enum: ['Error', 'Warning', 'Info', ''] }),
    }),
    { keys: ['type'] },
  )
