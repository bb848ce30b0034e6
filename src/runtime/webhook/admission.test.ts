import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../testkit/manual-clock.ts'
import type { KubeObject } from '../../kube/index.ts'
import { jsonLogger, silentLogger } from '../log.ts'
import type { AdmissionResponse } from './admission-response.ts'
import { mutating, validating, type AdmissionRequest } from './admission.ts'
import { answerReview, type ReviewOptions, type Route } from './review.ts'

interface Widget extends KubeObject {
  spec?: { size?: number; colour?: string }
}

const widget: Widget = { metadata: { name: 'w', namespace: 'ns' }, spec: { size: 3 } }
const request = {
  uid: 'u-1',
  kind: { group: 'example.com', version: 'v1', kind: 'Widget' },
  resource: { group: 'example.com', version: 'v1', resource: 'widgets' },
  name: 'w',
  namespace: 'ns',
  operation: 'CREATE',
  userInfo: { username: 'ada', groups: ['admins'] },
  object: widget,
  oldObject: null,
  options: null,
}

const options = (more: Partial<ReviewOptions> = {}): ReviewOptions => ({
  path: '/check-widget',
  timeoutMs: 8000,
  signal: new AbortController().signal,
  log: silentLogger,
  ...more,
})

const ask = (route: Route, more: object = {}, how = options()) =>
  answerReview(
    route,
    JSON.stringify({ apiVersion: route.apiVersion, kind: route.kind, request: { ...request, ...more } }),
    how,
  )

const responseOf = async (route: Route, more: object = {}, how = options()): Promise<AdmissionResponse> => {
  const answer = await ask(route, more, how)
  assert.ok('body' in answer, JSON.stringify(answer))
  const { response, ...envelope } = JSON.parse(answer.body) as { response: AdmissionResponse & { uid: string } }
  assert.deepEqual(envelope, { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' })
  const { uid, ...rest } = response
  assert.equal(uid, 'u-1')
  return rest
}

test('R0.30 a handler sees the request, with absent parts absent', async () => {
  let seen: AdmissionRequest<Widget> | undefined
  const route = validating<Widget>((asked) => void (seen = asked))
  assert.deepEqual(await responseOf(route), { allowed: true })
  const { oldObject: _old, options: _options, ...present } = request
  assert.deepEqual(seen, { ...present, dryRun: false })
})

test('R0.30 a denial becomes a status with code, reason, message and the field as its cause', async () => {
  const route = validating<Widget>(() => ({ reason: 'Invalid', message: 'must be even', field: 'spec.size' }))
  assert.deepEqual(await responseOf(route), {
    allowed: false,
    status: {
      status: 'Failure',
      code: 422,
      reason: 'Invalid',
      message: 'spec.size: must be even',
      details: {
        name: 'w',
        group: 'example.com',
        kind: 'Widget',
        causes: [{ reason: 'FieldValueInvalid', field: 'spec.size', message: 'must be even' }],
      },
    },
  })
})

test('R0.30 a denial without a field has no causes; one with several lists them all', async () => {
  const plain = validating<Widget>(async () => ({ reason: 'Forbidden', message: 'not you' }))
  const forbidden = await responseOf(plain, { name: '' })
  assert.deepEqual(forbidden.status?.details, { group: 'example.com', kind: 'Widget' })
  assert.equal(forbidden.status?.code, 403)

  const causes = [
    { field: 'spec.a', message: 'is wrong' },
    { field: 'spec.b', message: 'is worse' },
  ]
  const several = await responseOf(validating<Widget>(() => ({ reason: 'Invalid', message: 'two faults', causes })))
  assert.equal(several.status?.message, 'two faults')
  assert.deepEqual(
    several.status?.details?.causes?.map((cause) => cause.field),
    ['spec.a', 'spec.b'],
  )
})

test('R0.30 warnings are one line of at most 256 characters each', async () => {
  const warnings = ['two\r\nlines\u0000and more', '💚'.repeat(300), 'x'.repeat(256)]
  const admitted = await responseOf(validating<Widget>(() => ({ warnings })))
  assert.deepEqual(admitted, {
    allowed: true,
    warnings: ['two lines and more', `${'💚'.repeat(255)}…`, 'x'.repeat(256)],
  })
  const denied = await responseOf(validating<Widget>(() => ({ reason: 'Invalid', message: 'no', warnings: ['w'] })))
  assert.deepEqual([denied.allowed, denied.warnings], [false, ['w']])
})

const patchIn = (response: AdmissionResponse): unknown =>
  JSON.parse(Buffer.from(response.patch ?? '', 'base64').toString('utf8'))

test('R0.30 a changed object goes back as a JSON Patch, also when the handler changes the one it was given', async () => {
  const inPlace = mutating<Widget>(({ object }) => {
    object!.spec!.colour = 'grün'
    return object
  })
  const copy = mutating<Widget>(async ({ object }) => ({ ...object!, spec: { ...object!.spec, colour: 'grün' } }))
  for (const route of [inPlace, copy]) {
    const response = await responseOf(route)
    assert.deepEqual([response.allowed, response.patchType], [true, 'JSONPatch'])
    assert.deepEqual(patchIn(response), [{ op: 'add', path: '/spec/colour', value: 'grün' }])
  }
})

test('R0.30 a field set to undefined is removed', async () => {
  const route = mutating<KubeObject>(({ object }) => ({ ...object!, spec: undefined }))
  assert.deepEqual(patchIn(await responseOf(route)), [{ op: 'remove', path: '/spec' }])
})

test('R0.30 nothing changed, nothing to change: admitted without a patch', async () => {
  assert.deepEqual(await responseOf(mutating<Widget>(({ object }) => object)), { allowed: true })
  assert.deepEqual(await responseOf(mutating<Widget>(() => undefined)), { allowed: true })
  const onDelete = { operation: 'DELETE', object: null, oldObject: widget }
  assert.deepEqual(
    await responseOf(
      mutating<Widget>(() => widget),
      onDelete,
    ),
    { allowed: true },
  )
})

test('R0.30 a mutating handler may warn or deny as well', async () => {
  const warns = mutating<Widget>(({ object }) => ({ object: { ...object!, spec: {} }, warnings: ['size is gone'] }))
  const warned = await responseOf(warns)
  assert.deepEqual([warned.allowed, warned.warnings], [true, ['size is gone']])
  assert.deepEqual(patchIn(warned), [{ op: 'remove', path: '/spec/size' }])
  const denied = await responseOf(mutating<Widget>(() => ({ reason: 'Forbidden', message: 'no' })))
  assert.deepEqual([denied.allowed, denied.status?.code], [false, 403])
})

test('R0.30 a handler that throws denies with code 500, names the webhook, and tells the log only why', async () => {
  const lines: string[] = []
  const route = validating<Widget>(() => {
    throw new Error('password hunter2 was refused')
  })
  const how = options({ log: jsonLogger((line) => lines.push(line)) })
  const response = await responseOf(route, {}, how)
  const message = 'webhook /check-widget failed; its log says why, under uid u-1'
  assert.deepEqual(response, {
    allowed: false,
    status: { status: 'Failure', code: 500, reason: 'InternalError', message },
  })
  assert.equal(lines.length, 1)
  const logged = JSON.parse(lines[0]!) as Record<string, unknown>
  assert.deepEqual([logged['webhook'], logged['uid']], ['/check-widget', 'u-1'])
  assert.match(String(logged['error']), /hunter2/)
})

test('R0.30 what cannot be sent is a failure like any other', async () => {
  const route = mutating<Widget>(({ object }) => ({ ...object!, spec: { size: 1n as unknown as number } }))
  assert.equal((await responseOf(route)).status?.code, 500)
})

test('R0.30 a handler that hangs denies in time, and is told to give up', async () => {
  const clock = manualClock()
  const { promise: started, resolve } = Promise.withResolvers<AbortSignal>()
  const route = validating<Widget>((_request, { signal }) => {
    resolve(signal)
    return new Promise(() => {})
  })
  const response = responseOf(route, {}, options({ clock }))
  const signal = await started
  clock.advance(8000)
  assert.equal((await response).status?.message, 'webhook /check-widget did not answer within 8 s')
  assert.equal((await response).status?.code, 504)
  assert.ok(signal.aborted)
})

test('R0.30 a review that is not one gets a 400 that says what is wrong', async () => {
  const route = validating<Widget>(() => assert.fail('must not be asked'))
  const envelope = { apiVersion: route.apiVersion, kind: route.kind }
  const bodies: [string, RegExp][] = [
    ['{"apiVersion":', /not a JSON object/],
    ['[]', /not a JSON object/],
    ['null', /not a JSON object/],
    [JSON.stringify({ ...envelope, kind: 'ConversionReview', request }), /no AdmissionReview of admission/],
    [JSON.stringify({ ...envelope, apiVersion: 'admission.k8s.io/v1beta1', request }), /no AdmissionReview of/],
    [JSON.stringify(envelope), /no request with a uid/],
    [JSON.stringify({ ...envelope, request: { ...request, uid: 7 } }), /no request with a uid/],
    [JSON.stringify({ ...envelope, request: { ...request, operation: 'PATCH' } }), /operation/],
    [JSON.stringify({ ...envelope, request: { ...request, userInfo: null } }), /userInfo/],
    [JSON.stringify({ ...envelope, request: { ...request, object: 'widget' } }), /request.object/],
  ]
  for (const [body, message] of bodies) {
    const answer = await answerReview(route, body, options())
    assert.ok('status' in answer, body)
    assert.equal(answer.status, 400)
    assert.match(answer.message, message)
  }
})
