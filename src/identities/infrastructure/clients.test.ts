import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { manualClock } from '../../../testkit/index.ts'
import { AwsError, failedFor, type AwsClient, type QueryCall, type XmlElement } from '../../aws/index.ts'
import { clientMaker, type Clients } from './clients.ts'
import { removeInfrastructure } from './removal.ts'

const nothing: XmlElement = { name: 'answer', text: '', children: [] }

/** An AWS that answers when it is told to, and the clients of clusters: `account region`. */
const scene = () => {
  const clock = manualClock()
  const underWay: { call: QueryCall; answer: () => void; refuse: () => void }[] = []
  const aws: AwsClient = {
    endpoints: {},
    json: () => assert.fail('nothing of this speaks JSON'),
    query: (call) => {
      const { promise, resolve, reject } = Promise.withResolvers<XmlElement>()
      const refuse = () => reject(new AwsError({ reason: 'Throttled', message: 'RequestLimitExceeded' }))
      underWay.push({ call, answer: () => resolve(nothing), refuse })
      return promise
    },
    close: () => {},
  }
  const credentials = {
    get: (recipe: { secret?: { namespace: string } | undefined }) =>
      Promise.resolve({ accessKeyId: recipe.secret!.namespace, secretAccessKey: 'any' }),
    forget: () => {},
  }
  const clientsFor = clientMaker({ credentials: credentials as never, clock }, { aws, random: () => 1 })
  const { signal } = new AbortController()
  /** Calls that AWS has at this moment. */
  const at = (place: string) =>
    underWay.filter(({ call }) => `${call.credentials!.accessKeyId} ${call.region}` === place)
  return {
    clock,
    /** The clients of one cluster there. */
    clients: (place: string, secretName = 'keys'): Clients => {
      const [account, region] = place.split(' ') as [string, string]
      const recipe = { kind: 'static', secret: { namespace: account, name: secretName } } as const
      return clientsFor({ recipe, account, region, beforeChange: () => Promise.resolve(), signal })
    },
    at,
    /** The same, to be answered or refused. */
    take: (place: string) => {
      const taken = at(place)
      for (const one of taken) underWay.splice(underWay.indexOf(one), 1)
      return taken
    },
  }
}

const [here, otherRegion, otherAccount] = ['111111111111 eu-west-1', '111111111111 us-west-2', '222222222222 eu-west-1']
const looks = (clients: Clients, times: number): Promise<unknown>[] =>
  Array.from({ length: times }, () => clients.ec2.vpcs({}))

test('R3.71 the budget of an account and region is shared by all clusters there, whoever acts for them, and by nobody else', async () => {
  const { clients, at, take } = scene()
  const [one, two] = [clients(here, 'keys'), clients(here, 'other-keys')]
  const all = [...looks(one, 10), ...looks(two, 10)]
  const others = [...looks(clients(otherRegion), 5), ...looks(clients(otherAccount), 5)]
  const balancers = one.elb.loadBalancer('x')
  await turn()
  const of = (place: string, service: string): number => at(place).filter(({ call }) => call.service === service).length
  assert.equal(of(here, 'ec2'), 8)
  assert.equal(of(here, 'elasticloadbalancing'), 1) // AWS counts each service for itself
  assert.deepEqual([of(otherRegion, 'ec2'), of(otherAccount, 'ec2')], [5, 5])
  let most = 0
  while (at(here).length + at(otherRegion).length + at(otherAccount).length > 0) {
    most = Math.max(most, of(here, 'ec2'))
    for (const place of [here, otherRegion, otherAccount]) for (const { answer } of take(place)) answer()
    await turn()
  }
  await Promise.all([...all, ...others, balancers])
  assert.equal(most, 8)
})

test('R3.71 a storm in one account and region stops all clusters there before they call, one looks when it is over, and others never notice', async () => {
  const { clients, at, take, clock } = scene()
  const [one, two] = [clients(here), clients(here, 'other-keys')]
  const storm = looks(one, 3)
  await turn()
  for (const { refuse } of take(here)) refuse()
  for (const one of await Promise.allSettled(storm)) assert.equal(one.status, 'rejected')

  const isThrottled = (error: unknown): boolean => failedFor(error, 'Throttled') && error.policy.kind === 'wait'
  for (const look of looks(two, 5)) await assert.rejects(look, isThrottled)
  assert.equal(at(here).length, 0)
  const calm = [...looks(clients(otherRegion), 8), ...looks(clients(otherAccount), 8)]
  await turn()
  assert.deepEqual([at(otherRegion).length, at(otherAccount).length], [8, 8])
  for (const place of [otherRegion, otherAccount]) for (const { answer } of take(place)) answer()
  await Promise.all(calm)

  clock.advance(1001)
  const after = [...looks(one, 4), ...looks(two, 4)]
  await turn()
  assert.equal(at(here).length, 1)
  for (const { answer } of take(here)) answer()
  await turn()
  assert.equal(at(here).length, 7)
  for (const { answer } of take(here)) answer()
  await Promise.all(after)
})

test('R3.68 a removal that fails in one part lets go of the cluster only when its other calls are over', async () => {
  const { clients, take } = scene()
  const gateway = { id: 'nat-1', state: 'available' }
  const scope = {
    ...clients(here),
    cluster: { metadata: { namespace: 'a', name: 'b' } },
    infrastructure: { memory: { unmade: () => {} } },
    seen: { natGateways: [gateway] },
    look: () => Promise.resolve(),
  }
  const outcome = removeInfrastructure(scope as never).catch((error: Error) => error.message)
  await turn()
  const underWay = take(here)
  const of = (action: string) => underWay.find(({ call }) => call.action === action)!
  assert.equal(underWay.length, 2)
  of('DescribeLoadBalancers').refuse()
  await turn()
  assert.equal(await Promise.race([outcome, Promise.resolve('at work')]), 'at work')
  of('DeleteNatGateway').answer()
  assert.match(String(await outcome), /RequestLimitExceeded/)
})
