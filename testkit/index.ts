/**
 * The real parts for tests and the demo. Everything listens on 127.0.0.1, and nothing outlives the process that started it.
 *
 *     const plane = await startControlPlane()          // etcd, API server, controller manager
 *     t.after(() => plane.stop())
 *     const path = plane.kubeconfigFor({ user: 'ada', groups: ['admins'] })
 *     await plane.apiServer.kill()                     // and .restart(), .pause(), .resume()
 *     await plane.requestsBy('my-agent/')              // what a client has cost, from the audit log
 *     await eventually(() => …)                        // waits, and says what it saw last
 *     const proxy = await startFaultProxy(plane, …)    // 410, 429, cut and stalled streams
 *     const aws = await startLocalAws()                // IAM, STS, EKS of many accounts
 *     const runner = await startRunner(plane)          // its Deployments, Jobs and CronJobs become processes
 *     await mustRun('clusteradm', ['init'], { plane }) // the program, as a person runs it
 */
export type { AuditEntry, RequestCount, Requester } from './audit.ts'
export { Component, type ComponentOptions } from './component.ts'
export { ControlPlane, startControlPlane, type ClientIdentity, type ControlPlaneOptions } from './control-plane.ts'
export type { Identity } from './credentials.ts'
export { eventually, type EventuallyOptions } from './eventually.ts'
export type { FaultRequest, Matcher } from './fault-exchange.ts'
export { FaultProxy, startFaultProxy, type FaultAnswer } from './faults.ts'
export type { Flags } from './flags.ts'
export { accept, allowBootstrap, sendTo, startAgent, startHub, type LanyardProcess } from './lanyard.ts'
export { keptFolder, removeKeptFolder } from './keeper.ts'
export { manualClock, type ManualClock } from './manual-clock.ts'
export { startLocalAws, type LocalAws } from './local-aws.ts'
export { freePort } from './ports.ts'
export { randomFrom, rounds, seededRandom, type Random } from './random.ts'
export { inventory } from './inventory.ts'
export { mustRun, programPath, runProgram, type Outcome, type ProgramName } from './program.ts'
export { startRunner, type Runner, type RunnerOptions } from './runner/index.ts'
export { runCli, type CliResult } from './run-cli.ts'
