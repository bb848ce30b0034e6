import { type InferFields, type Schema, string } from './schema.ts'

const fields = {
  namespace: string('Namespace of the secret.', { minLength: 1, maxLength: 63 }),
  name: string('Name of the secret.', { minLength: 1, maxLength: 253 }),
}

/**
 * A secret by namespace and name, or by name alone. A structural schema has no union of text and object, and CEL cannot
 * look into a field without a type. But a field that preserves what it does not know needs no type, and each keyword
 * only speaks about its own: `required` about objects, `minLength` about text. The impossible ranges refuse numbers and
 * lists, `not` refuses true and false, and null counts as absent.
 */
export const secretReference = (description: string): Schema<InferFields<typeof fields> | string> => ({
  json: {
    description,
    'x-kubernetes-preserve-unknown-fields': true,
    properties: { namespace: fields.namespace.json, name: fields.name.json },
    required: ['namespace', 'name'],
    minLength: 1,
    maxLength: 253,
    minimum: 1,
    maximum: 0,
    minItems: 1,
    maxItems: 0,
    not: { enum: [true, false] },
  },
})
