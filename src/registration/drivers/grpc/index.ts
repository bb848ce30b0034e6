/** Registration over gRPC: see docs/drivers/grpc.md. */
export * from './contract.ts'
export { configText, grpcAgentDriver, grpcApi, type GrpcAgentOptions } from './agent/index.ts'
export { grpcHubDriver, ownUser, requesterBehind, type GrpcHubOptions } from './hub/index.ts'
