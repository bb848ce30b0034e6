import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { stubHttpProxy } from '../../testkit/stub-proxy.ts'
import { stubCa, stubHttp, stubHttps } from '../../testkit/stub-server.ts'
import { awsClient, AwsError, pathOf, textAt, type AwsCall, type FailureReason } from './index.ts'
import { parseXml, listAt } from './xml.ts'

const credentials = { accessKeyId: 'AKIA', secretAccessKey: 'not-to-be-seen', sessionToken: 'nor-this' }

type Answer = { status: number; body: string; headers?: Record<string, string> }
const against = async (t: TestContext, answer: Answer | 'close') => {
  const calls: AwsCall[] = []
  const stub = await stubHttp(t, (request, response) => {
    if (answer === 'close') request.socket.destroy()
    else request.resume().on('end', () => response.writeHead(answer.status, answer.headers).end(answer.body))
  })
  const aws = awsClient({ endpoints: { all: stub.server }, onCall: (call) => calls.push(call) })
  t.after(() => aws.close())
  return { aws, calls }
}

const xml = (code: string, message = 'said AWS'): string =>
  `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>r-1</RequestId></ErrorResponse>`
const ec2 = (code: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>${code}</Code><Message>said AWS</Message></Error></Errors><RequestID>r-1</RequestID></Response>`

const failures: [FailureReason, number, string, policy?: string][] = [
  ['AccessDenied', 403, xml('AccessDenied')],
  ['ExpiredToken', 403, xml('ExpiredToken')],
  ['InvalidCredentials', 403, xml('InvalidClientTokenId')],
  ['InvalidCredentials', 403, xml('SignatureDoesNotMatch')],
  ['ClockSkew', 403, xml('SignatureDoesNotMatch', 'Signature expired: 20261115T000000Z is now earlier than …')],
  ['ClockSkew', 403, xml('RequestTimeTooSkewed')],
  ['Throttled', 400, xml('Throttling')],
  ['Throttled', 429, ''],
  ['MalformedPolicy', 400, xml('MalformedPolicyDocument'), 'stall'],
  ['PolicyTooLarge', 400, xml('PackedPolicyTooLarge'), 'stall'],
  ['RegionDisabled', 403, xml('RegionDisabledException')],
  ['WebIdentityRefused', 400, xml('InvalidIdentityToken')],
  ['WebIdentityUnreachable', 400, xml('IDPCommunicationError')],
  ['InvalidRequest', 400, xml('ValidationError')],
  ['NotFound', 404, xml('NoSuchEntity')],
  ['NotFound', 400, ec2('InvalidVpcID.NotFound')],
  ['AlreadyExists', 409, xml('EntityAlreadyExists')],
  ['AlreadyExists', 400, ec2('InvalidSubnet.Conflict')],
  ['Conflict', 409, xml('DeleteConflict')],
  ['Conflict', 400, ec2('DependencyViolation')],
  ['Conflict', 400, ec2('InvalidIPAddress.InUse')],
  ['Conflict', 400, ec2('IncorrectState')],
  ['LimitExceeded', 400, ec2('NatGatewayLimitExceeded')],
  ['Throttled', 503, ec2('RequestLimitExceeded')],
  ['Throttled', 503, ec2('EC2ThrottledException')],
  ['Other', 500, ec2('InsufficientAddressCapacity')],
  ['NotFound', 400, xml('InvalidSecurityGroup')],
  ['AccessDenied', 403, ec2('UnauthorizedOperation')],
  ['Unavailable', 503, '<html><p>not XML'],
  ['Unavailable', 200, '<html><p>a proxy that is glad to help'],
  ['Other', 418, ''],
]

test('R3.47 whatever AWS calls it, a failure has one reason and says what it was about', async (t) => {
  for (const [reason, status, body, policy = 'retry'] of failures) {
    const { aws, calls } = await against(t, { status, body })
    const call = aws.query({ service: 'sts', region: 'eu-west-1', credentials, version: '1', action: 'AssumeRole' })
    const error: unknown = await call.catch((error: unknown) => error)
    assert.ok(error instanceof AwsError)
    assert.deepEqual([error.reason, error.policy.kind], [reason, policy], body)
    assert.match(error.message, /^sts AssumeRole in eu-west-1: /)
    assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)}`, /not-to-be-seen|nor-this/)
    if (status >= 300)
      assert.deepEqual(
        calls.map(({ result }) => result),
        [reason],
      )
  }
})

test('failures of EKS are read from its JSON, with the id of the request', async (t) => {
  const { aws } = await against(t, {
    status: 404,
    body: '{"message":"No cluster found for name: x."}',
    headers: { 'x-amzn-errortype': 'ResourceNotFoundException:http://internal', 'x-amzn-requestid': 'r-2' },
  })
  const call = {
    service: 'eks',
    region: 'eu-west-1',
    credentials,
    operation: 'DescribeCluster',
    method: 'GET',
  } as const
  await assert.rejects(aws.json({ ...call, path: pathOf('clusters', 'x') }), (error) => {
    assert.ok(error instanceof AwsError)
    assert.deepEqual([error.reason, error.code, error.requestId], ['NotFound', 'ResourceNotFoundException', 'r-2'])
    return true
  })
})

test('a token that AWS repeats does not get into an error, and a long answer is cut', async (t) => {
  const token = `eyJhbGciOiJSUzI1NiJ9.${'x'.repeat(900)}.c2ln`
  const { aws } = await against(t, { status: 400, body: xml('ValidationError', `Value '${token}' ${'y'.repeat(900)}`) })
  const call = aws.query({ service: 'sts', region: 'eu-west-1', version: '1', action: 'AssumeRoleWithWebIdentity' })
  await assert.rejects(call, (error: Error) => !/eyJ|xxx/.test(error.message) && error.message.length < 700)
})

test('nobody there, and being told to stop, are two things', async (t) => {
  const { aws, calls } = await against(t, 'close')
  const call = { service: 'sts', region: 'eu-west-1', credentials, version: '1', action: 'GetCallerIdentity' } as const
  await assert.rejects(aws.query(call), (error) => error instanceof AwsError && error.reason === 'Unreachable')
  assert.equal(calls.length, 1)
  const stop = AbortSignal.abort(new Error('enough'))
  await assert.rejects(aws.query({ ...call, signal: stop }), /^Error: enough$/)
})

test('TLS is checked, other authorities can be trusted, and a proxy is used where one is set', async (t) => {
  const stub = await stubHttps(t, (request, response) => request.resume().on('end', () => response.end('<R/>')))
  const proxy = await stubHttpProxy(t)
  const ask = async (options: { ca?: string; proxyEnv?: Record<string, string> }): Promise<string> => {
    const aws = awsClient({ endpoints: { all: stub.server }, ...options })
    const call = {
      service: 'sts',
      region: 'eu-west-1',
      credentials,
      version: '1',
      action: 'GetCallerIdentity',
    } as const
    return aws
      .query(call)
      .then(({ name }) => name)
      .catch((error: Error) => error.message)
      .finally(() => aws.close())
  }
  assert.match(await ask({}), /no connection \((UNABLE_TO_VERIFY|SELF_SIGNED)/)
  assert.equal(await ask({ ca: stubCa }), 'R')
  assert.deepEqual(proxy.targets, [])
  assert.equal(await ask({ ca: stubCa, proxyEnv: { HTTPS_PROXY: proxy.server } }), 'R')
  assert.deepEqual(proxy.targets, [`127.0.0.1:${stub.port}`])
  assert.equal(await ask({ ca: stubCa, proxyEnv: { HTTPS_PROXY: proxy.server, NO_PROXY: '127.0.0.1' } }), 'R')
  assert.equal(proxy.targets.length, 1)
})

test('a connection that the server closed meanwhile is noticed by nobody', async (t) => {
  const seen = new Map<unknown, number>()
  const stub = await stubHttp(t, (request, response) => {
    const before = seen.get(request.socket) ?? 0
    seen.set(request.socket, before + 1)
    if (before > 0) request.socket.destroy()
    else request.resume().on('end', () => response.end('<R/>'))
  })
  const aws = awsClient({ endpoints: { all: stub.server } })
  t.after(() => aws.close())
  const call = { service: 'sts', region: 'eu-west-1', credentials, version: '1', action: 'GetCallerIdentity' } as const
  for (let n = 0; n < 3; n++) assert.equal((await aws.query(call)).name, 'R')
  assert.equal(stub.accepted(), 3)
})

test('paths keep what is in their segments, and lists of EC2 are numbered in its way', async (t) => {
  const seen: { url: string; body: string }[] = []
  const stub = await stubHttp(t, (request, response) => {
    let body = ''
    request
      .on('data', (chunk: Buffer) => (body += String(chunk)))
      .on('end', () => {
        seen.push({ url: request.url!, body })
        response.end(request.method === 'GET' ? '{}' : '<R/>')
      })
  })
  const aws = awsClient({ endpoints: { all: stub.server } })
  t.after(() => aws.close())
  const at = { region: 'eu-west-1', credentials } as const
  const path = pathOf('clusters', 'h', 'access-entries', 'arn:aws:iam::1:role/a')
  await aws.json({
    ...at,
    service: 'eks',
    operation: 'DescribeAccessEntry',
    method: 'GET',
    path,
    query: { a: 'b c', d: undefined },
  })
  const Ids = ['i-1', 'i-2']
  await aws.query({
    ...at,
    service: 'ec2',
    version: '1',
    action: 'A',
    parameters: { Ids, Filter: [{ Name: 'n', Value: ['v'] }] },
  })
  await aws.query({ ...at, service: 'iam', version: '1', action: 'A', parameters: { Ids, No: undefined } })
  assert.deepEqual(seen, [
    { url: '/clusters/h/access-entries/arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa?a=b%20c', body: '' },
    { url: '/', body: 'Action=A&Version=1&Ids.1=i-1&Ids.2=i-2&Filter.1.Name=n&Filter.1.Value.1=v' },
    { url: '/', body: 'Action=A&Version=1&Ids.member.1=i-1&Ids.member.2=i-2' },
  ])
})

test('answers are read with their entities, and what is not XML is refused', () => {
  const read = parseXml(
    '<?xml version="1.0"?>\n<R xmlns="x"><L><member><N>a &lt;&amp;&gt; &#252;&#xFC;</N></member><member/></L><E/></R>\n',
  )
  assert.deepEqual(
    listAt(read, 'L').map((entry) => textAt(entry, 'N')),
    ['a <&> üü', undefined],
  )
  assert.equal(textAt(read, 'E'), '')
  assert.equal(textAt(read, 'X', 'Y'), undefined)
  for (const text of ['', 'x', '<a>', '<a></b>', '<a/><b/>', '<a', '</a>', '<a>&#99999999;</a', '{"a":1}'])
    assert.throws(() => parseXml(text), SyntaxError, text)
})
