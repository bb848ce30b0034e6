/**
 * The agent's side of the gRPC strategy. A tour: `driver.ts` is the registration driver, `config.ts` reads and writes its
 * configuration. `api.ts` gives the rest of the agent the hub in the shape of a Kubernetes client; below it are a store for each
 * kind (`feed.ts`), the writes (`objects.ts`, `works.ts`, `leases.ts`, `tokens.ts`) and the connection (`link.ts`, `listening.ts`).
 */
export { grpcApi } from './api.ts'
export { configText } from './config.ts'
export { grpcAgentDriver, type GrpcAgentOptions } from './driver.ts'
