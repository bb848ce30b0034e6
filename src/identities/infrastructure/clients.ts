import {
  ec2Reads,
  ec2Version,
  ec2Writes,
  elb,
  elbVersion,
  failedFor,
  Gate,
  recipeKey,
  type AwsClient,
  type Ec2Reads,
  type Ec2Writes,
  type Elb,
  type QuerySender,
  type Recipe,
} from '../../aws/index.ts'
import type { Room } from '../room.ts'

/** The clients of one cluster, for one pass: nobody else's credentials get into them. */
export interface Clients {
  ec2: Ec2Reads & Ec2Writes
  elb: Elb
}

export interface ClientOptions {
  recipe: Recipe
  account: string
  region: string
  /** Awaited before anything is changed; throws when nothing may be. */
  beforeChange: () => Promise<void>
  signal: AbortSignal
}

/** Calls under way to one service of one account and region. EC2 counts for the account: all clusters in it share one budget. */
const width = 8
const manyGates = 1000

/** Makes clients. Accounts and regions have gates of their own: one that is throttled keeps nobody else waiting. */
export const clientMaker = (
  room: Pick<Room, 'credentials' | 'clock'>,
  { aws, random }: { aws: AwsClient; random: () => number },
): ((options: ClientOptions) => Clients) => {
  const gates = new Map<string, Gate>()
  const gateOf = (key: string): Gate => {
    if (gates.size > manyGates) for (const [other, gate] of gates) if (gate.idle) gates.delete(other)
    const gate = gates.get(key) ?? new Gate({ clock: room.clock, random, width })
    gates.set(key, gate)
    return gate
  }
  return ({ recipe, account, region, beforeChange, signal }) => {
    const sender =
      (service: 'ec2' | 'elasticloadbalancing', version: string): QuerySender =>
      async (action, parameters = {}) => {
        if (!action.startsWith('Describe')) await beforeChange()
        const credentials = await room.credentials.get(recipe, signal)
        const call = { service, region, credentials, version, action, parameters, signal }
        try {
          return await gateOf(JSON.stringify([account, region, service])).run(() => aws.query(call))
        } catch (error) {
          // Revoked before its time: the next one is got anew.
          if (failedFor(error, 'ExpiredToken', 'InvalidCredentials'))
            room.credentials.forget((link) => recipeKey(link) === recipeKey(recipe))
          throw error
        }
      }
    const ec2 = sender('ec2', ec2Version)
    return { ec2: { ...ec2Reads(ec2), ...ec2Writes(ec2) }, elb: elb(sender('elasticloadbalancing', elbVersion)) }
  }
}
