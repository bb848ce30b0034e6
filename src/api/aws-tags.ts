import { map, string } from './schema.ts'

/** Tags within the limits of AWS: 50 of them, keys of 128 characters, values of 256, and no `aws:` of its own. */
export const awsTags = (description: string) =>
  map(description, string(undefined, { maxLength: 256 }), {
    maxProperties: 50,
    rules: [
      {
        rule: 'self.all(key, size(key) >= 1 && size(key) <= 128 && !key.startsWith("aws:"))',
        message: 'a tag key has 1 to 128 characters and does not begin with "aws:"',
      },
    ],
  })
