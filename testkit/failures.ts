import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { ApiError, ConnectionError } from '../src/kube/index.ts'
import { secrets } from './stub-server.ts'

/** The error of a request, which must say where it went, what led there and what to do, and must not tell a secret. */
export const failureOf = async (request: Promise<unknown>): Promise<ConnectionError | ApiError> => {
  const error: unknown = await request.then(
    (answer) => assert.fail(`it should have failed, and gave ${inspect(answer)}`),
    (error: unknown) => error,
  )
  assert.ok(error instanceof ConnectionError || error instanceof ApiError, `not one of our errors: ${inspect(error)}`)
  const { server, source } = error.request
  assert.ok(error.message.includes(` at ${server} (${source}): `), error.message)
  if (error instanceof ConnectionError) assert.match(error.message, /; \w+/, 'it says what to do')
  // with its cause and every property
  const everything = inspect(error, { depth: 20, showHidden: true })
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  for (const secret of Object.values(secrets).flatMap((one) => [one, encodeURIComponent(one), base64(one)]))
    assert.ok(!everything.includes(secret), `it tells the secret ${secret}: ${everything}`)
  return error
}

/** The same for a failure without an answer; `code` says of which kind it was. */
export const connectionFailureOf = async (request: Promise<unknown>): Promise<ConnectionError> => {
  const error = await failureOf(request)
  assert.ok(error instanceof ConnectionError, inspect(error))
  return error
}
