/**
 * One definition of a field gives two things: its TypeScript type (`Infer`) and its structural OpenAPI v3 schema (`json`).
 * Every builder takes the description first. In `object`, a key that ends in `?` is an optional field, as in TypeScript:
 *
 *     const Taint = object('Keeps placements away.', { key: string('Its name.'), 'value?': string('Its value.') })
 *     type Taint = Infer<typeof Taint> // { key: string; value?: string | undefined }
 */

/** A schema in the dialect that apiextensions.k8s.io/v1 takes. */
export interface JsonSchema {
  description?: string | undefined
  type?: 'string' | 'integer' | 'boolean' | 'array' | 'object' | undefined
  properties?: Record<string, JsonSchema> | undefined
  additionalProperties?: JsonSchema | undefined
  items?: JsonSchema | undefined
  required?: string[] | undefined
  default?: unknown
  [keyword: string]: unknown
}

/** What one field may hold: as a type for the compiler, as JSON for the API server. */
export interface Schema<T = unknown> {
  readonly json: JsonSchema
  /** Carries the type only; never set. */
  readonly valueType?: T
}

/** The TypeScript type of what a schema accepts. */
export type Infer<S> = S extends Schema<infer T> ? T : never

/** A CEL rule; `oldSelf` in it makes it a rule about updates. */
export interface Rule {
  rule: string
  message: string
  fieldPath?: string
}

interface Options<T> {
  default?: T
  rules?: Rule[]
}

interface StringOptions<E extends string> extends Options<NoInfer<E>> {
  enum?: readonly E[]
  pattern?: string
  minLength?: number
  maxLength?: number
  format?: string
}

interface NumberOptions extends Options<number> {
  minimum?: number
  maximum?: number
}

interface ArrayOptions<T> extends Options<T[]> {
  /** Field names that identify an item: items are then merged by key, not replaced as a whole. */
  keys?: string[]
  /** Items are unique values that are merged one by one. */
  set?: true
  minItems?: number
  maxItems?: number
}

interface MapOptions<T> extends Options<Record<string, T>> {
  maxProperties?: number
}

type Fields = Record<string, Schema>

/** The object type behind a set of fields, with `?` keys made optional. */
export type InferFields<F extends Fields> = Flat<
  { [K in keyof F as K extends `${string}?` ? never : K]: Infer<F[K]> } & {
    [K in keyof F as K extends `${infer Name}?` ? Name : never]?: Infer<F[K]> | undefined
  }
>

type Flat<T> = { [K in keyof T]: T[K] }

/** Undefined keywords are left out, and rules get the name that the API server knows. */
const schema = <T>({ rules, ...keywords }: JsonSchema & { rules?: Rule[] | undefined }): Schema<T> => {
  const json: JsonSchema = {}
  for (const [keyword, value] of Object.entries(keywords)) if (value !== undefined) json[keyword] = value
  if (rules) json['x-kubernetes-validations'] = rules
  return { json }
}

/** Text; with `enum`, a union of its literals. */
export const string = <const E extends string = string>(description?: string, options: StringOptions<E> = {}) =>
  schema<E>({ description, type: 'string', ...options })

/** Base64 in JSON. */
export const bytes = (description: string) => schema<string>({ description, type: 'string', format: 'byte' })

/** An RFC 3339 moment, kept as the string that came over the wire. */
export const time = (description: string) => schema<string>({ description, type: 'string', format: 'date-time' })

/** A 32-bit number, or a 64-bit one with `int64`: TypeScript holds both exactly up to 2^53. */
export const integer = (description: string, options: NumberOptions & { format?: 'int32' | 'int64' } = {}) =>
  schema<number>({ description, type: 'integer', format: 'int32', ...options })

/** True or false. */
export const boolean = (description: string, options: Options<boolean> = {}) =>
  schema<boolean>({ description, type: 'boolean', ...options })

/** A number or text, such as a quantity. */
export const intOrString = (description?: string) =>
  schema<number | string>({
    description,
    'x-kubernetes-int-or-string': true,
    anyOf: [{ type: 'integer' }, { type: 'string' }],
  })

/** A list. Server-side apply replaces it as a whole unless `keys` or `set` is given. */
export const array = <T>(description: string, items: Schema<T>, options: ArrayOptions<T> = {}) => {
  const { keys, set, ...rest } = options
  return schema<T[]>({
    description,
    type: 'array',
    items: items.json,
    'x-kubernetes-list-type': keys ? 'map' : set ? 'set' : 'atomic',
    'x-kubernetes-list-map-keys': keys,
    ...rest,
  })
}

/** Any keys, one kind of value. */
export const map = <T>(description: string, values: Schema<T>, options: MapOptions<T> = {}) =>
  schema<Record<string, T>>({ description, type: 'object', additionalProperties: values.json, ...options })

/** Named fields; everything else is pruned by the API server. `atomic` makes one writer own all of it. */
export const object = <F extends Fields>(
  description: string,
  fields: F,
  options: Options<InferFields<F>> & { atomic?: true } = {},
) => {
  const { atomic, ...rest } = options
  const names = Object.keys(fields)
  const required = names.filter((name) => !name.endsWith('?'))
  return schema<InferFields<F>>({
    description,
    type: 'object',
    required: required.length > 0 ? required : undefined,
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ''), fields[name]!.json])),
    'x-kubernetes-map-type': atomic ? 'atomic' : undefined,
    ...rest,
  })
}

/** Also accepts null, and stores it as null: a null that means something must not be dropped. */
export const nullable = <T>(of: Schema<T>): Schema<T | null> => ({ json: { ...of.json, nullable: true } })

/** Fields that we do not know and must not lose. */
export const unknownObject = (description: string) =>
  schema<Record<string, unknown>>({ description, type: 'object', 'x-kubernetes-preserve-unknown-fields': true })

/** Known fields plus others that pass through untouched: kinds that somebody else owns. */
export const openObject = <F extends Fields>(description: string, fields: F): Schema<InferFields<F>> => ({
  json: { ...object(description, fields).json, 'x-kubernetes-preserve-unknown-fields': true },
})

/** A whole Kubernetes object inside another: it must have apiVersion and kind. */
export const embeddedObject = (description: string) =>
  schema<Record<string, unknown>>({
    description,
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  })
