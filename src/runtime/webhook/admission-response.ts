/** The wire form of an answer. */
export interface AdmissionResponse {
  allowed: boolean
  status?: {
    status: 'Failure'
    code: number
    reason: string
    message: string
    details?: { name?: string; group?: string; kind?: string; causes?: (Cause & { reason: string })[] }
  }
  warnings?: string[]
  patchType?: 'JSONPatch'
  /** Base64. */
  patch?: string
}

/** One fault of an object. */
export interface Cause {
  /** Its path, such as `spec.taints[0].key`. */
  field: string
  message: string
}

/** Each reason is an HTTP status to the client; kubectl shows the causes of an `Invalid` field by field. */
const codes = {
  BadRequest: 400,
  Forbidden: 403,
  NotFound: 404,
  Conflict: 409,
  Invalid: 422,
  TooManyRequests: 429,
  ServiceUnavailable: 503,
} as const

/** Why an object is refused. */
export interface Denial {
  reason: keyof typeof codes
  message: string
  /** Where the fault is; short for one cause with the same message. */
  field?: string | undefined
  causes?: readonly Cause[] | undefined
  warnings?: readonly string[] | undefined
}

/** Admits, with a word to whoever sent it; the object is for handlers that change it. */
export interface Warned<T = never> {
  object?: T | undefined
  warnings?: readonly string[] | undefined
}

/** Yes, perhaps with warnings. */
export const admitted = (warnings: readonly string[] = []): AdmissionResponse => ({
  allowed: true,
  ...(warnings.length ? { warnings: warnings.map(oneLine) } : {}),
})

/** No, as a status that clients show like one of the API server's own. */
export const denied = (
  { reason, message, field, causes = [], warnings }: Denial,
  about: { name?: string; kind: { group: string; kind: string } },
): AdmissionResponse => {
  const all = [...(field === undefined ? [] : [{ field, message }]), ...causes]
  return {
    ...admitted(warnings),
    allowed: false,
    status: {
      status: 'Failure',
      code: codes[reason],
      reason,
      // Not every client shows the causes, so that the message names the field as well.
      message: field === undefined ? message : `${field}: ${message}`,
      details: {
        ...(about.name ? { name: about.name } : {}),
        group: about.kind.group,
        kind: about.kind.kind,
        ...(all.length ? { causes: all.map((cause) => ({ reason: 'FieldValueInvalid', ...cause })) } : {}),
      },
    },
  }
}

// A warning becomes an HTTP header; the API server cuts longer ones itself, in the middle of a word and without a trace.
const longest = 256

const oneLine = (warning: string): string => {
  const characters = Array.from(warning.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim())
  return characters.length <= longest ? characters.join('') : `${characters.slice(0, longest - 1).join('')}…`
}
