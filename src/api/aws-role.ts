import { awsTags } from './aws-tags.ts'
import { array, integer, string } from './schema.ts'

/** How a role is assumed. The limits are those of STS AssumeRole. */
export const roleFields = {
  roleARN: string('ARN of the role.', {
    minLength: 20,
    maxLength: 2048,
    pattern: '^arn:aws[a-z-]*:iam::[0-9]+:role/[\\x21-\\x7E]+$',
  }),
  'sessionName?': string('Name of the session, as CloudTrail shows it.', {
    minLength: 2,
    maxLength: 64,
    pattern: '^[\\w+=,.@-]*$',
  }),
  'durationSeconds?': integer('Lifetime of a session. AWS allows at most 3600 for a role assumed from a role.', {
    minimum: 900,
    maximum: 43200,
  }),
  'inlinePolicy?': string('A policy, as JSON, that narrows the session.', {
    maxLength: 2048,
    pattern: '^[\\t\\n\\r\\x20-\\xFF]*$',
  }),
  'policyARNs?': array(
    'Managed policies that narrow the session; a plain name is a policy of the account of the role.',
    string(undefined, { minLength: 1, maxLength: 2048 }),
    { maxItems: 10 },
  ),
  'tags?': awsTags('Tags of the session.'),
  'transitiveTags?': array(
    'Keys of tags that stay with sessions assumed from this one.',
    string(undefined, { minLength: 1, maxLength: 128 }),
    { set: true, maxItems: 50 },
  ),
}
