/** The door of the plug-in point: what a driver is, and the table of those that exist. A new one is a folder and a line here. */
import { awsIrsaAgentDriver, awsIrsaHubDriver } from './aws-irsa/index.ts'
import { csrAgentDriver, csrHubDriver } from './csr/index.ts'
import { grpcAgentDriver, grpcHubDriver } from './grpc/index.ts'

export * from './aws-irsa/index.ts'
export * from './csr/index.ts'
export type * from './driver.ts'
export * from './grpc/index.ts'
export { asBootstrapUser, asHolder, hubFromKubeconfig } from './kubeconfig-hub.ts'

/** Both sides of each driver, by the name that objects hold, in the order in which they are asked: `csr` serves whom no other does. */
export const drivers = {
  awsirsa: { hub: awsIrsaHubDriver, agent: awsIrsaAgentDriver },
  grpc: { hub: grpcHubDriver, agent: grpcAgentDriver },
  csr: { hub: csrHubDriver, agent: csrAgentDriver },
} as const

export type DriverName = keyof typeof drivers

/** The hub's sides, in the same order. */
export const hubDrivers = Object.fromEntries(Object.entries(drivers).map(([name, { hub }]) => [name, hub])) as {
  readonly [Name in DriverName]: (typeof drivers)[Name]['hub']
}
export type HubDriverName = DriverName

/** What people also write. */
const aliases: Readonly<Record<string, string>> = { 'aws-irsa': 'awsirsa' }

/** The driver that a person means. Throws an error that lists those that there are. */
export const parseDriverName = <N extends string = DriverName>(
  text: string,
  known: readonly N[] = Object.keys(drivers) as N[],
): N => {
  const name = Object.hasOwn(aliases, text) ? aliases[text] : text
  const found = known.find((one) => one === name)
  if (found !== undefined) return found
  const shown = known.map((one) => Object.entries(aliases).find(([, meant]) => meant === one)?.[0] ?? one)
  throw new RangeError(
    `${JSON.stringify(text.slice(0, 50))} is no registration driver; use one of: ${shown.join(', ')}`,
  )
}
