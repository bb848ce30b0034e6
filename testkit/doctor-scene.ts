import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import type { Fault, StepResult } from '../src/cli/doctor/index.ts'
import { startControlPlane, type ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { controlPlaneBinary, plainEnvironment } from './paths.ts'
import { mustRun, programPath } from './program.ts'
import { runCli, type CliResult } from './run-cli.ts'
import { startRunner, type Runner } from './runner/index.ts'

export type Stuck = Extract<StepResult, { state: 'stuck' }>

/** A hub and a cluster for it, everything in pods, and a person who asks doctor and does what it says. */
export interface DoctorScene {
  readonly hub: ControlPlane
  readonly managed: ControlPlane
  readonly runners: { hub: Runner; managed: Runner }
  /** Asks with the kubeconfigs of both sides, or as the words say. */
  doctor(...words: string[]): Promise<CliResult>
  /** What is stuck, hub first. */
  stuck(...words: string[]): Promise<Stuck[]>
  /** Waits until doctor finds this fault. */
  finds(fault: Fault): Promise<Stuck>
  /** Waits until doctor finds it, runs the command that it prints, and waits until it is found no more. */
  heals(fault: Fault): Promise<Stuck>
  /** Waits until nothing is stuck and everything could be looked at. */
  healthy(): Promise<void>
  stop(): Promise<void>
}

const patience = { timeoutMs: 180_000 }

/** A hub as `init` makes it, and a cluster that has joined it, or has not been told to yet. */
export const startDoctorScene = async ({ joined }: { joined: boolean }): Promise<DoctorScene> => {
  const [hub, managed] = await Promise.all([startControlPlane(), startControlPlane()])
  const [hubRunner, managedRunner] = await Promise.all([startRunner(hub), startRunner(managed)])
  const both = ['c1', '--kubeconfig', hub.kubeconfig, '--managed-kubeconfig', managed.kubeconfig]
  const doctor: DoctorScene['doctor'] = (...words) =>
    runCli(['doctor', ...(words.length > 0 ? words : both), '-o', 'json'])
  const stuck: DoctorScene['stuck'] = async (...words) => {
    const { code, out, err } = await doctor(...words)
    assert.ok(out, err)
    const found = stepsIn(out).filter((step): step is Stuck => step.state === 'stuck')
    assert.equal(code, found.length > 0 ? 1 : 0, 'the exit code says whether something is stuck')
    return found
  }
  const finds: DoctorScene['finds'] = (fault) =>
    eventually(async () => {
      const all = await stuck()
      return all.find((one) => one.fault === fault) ?? assert.fail(`${fault} is not among ${shown(all)}`)
    }, patience)
  const scene: DoctorScene = {
    hub,
    managed,
    runners: { hub: hubRunner, managed: managedRunner },
    doctor,
    stuck,
    finds,
    heals: async (fault) => {
      const found = await finds(fault)
      await inShell(found.command, hub.folder)
      await eventually(async () => {
        const all = await stuck()
        assert.ok(!all.some((one) => one.fault === fault), `after ${found.command}: ${shown(all)}`)
      }, patience)
      return found
    },
    healthy: () =>
      eventually(async () => {
        const { code, out, err } = await doctor()
        assert.equal(code, 0, out || err)
        assert.deepEqual(
          stepsIn(out).filter(({ state }) => state !== 'ok'),
          [],
        )
      }, patience),
    stop: async () => {
      await Promise.all([hubRunner.stop(), managedRunner.stop()])
      await Promise.all([hub.stop(), managed.stop()])
    },
  }
  try {
    await mustRun('clusteradm', ['init', '--wait'], { plane: hub })
    if (joined) await join(scene)
    return scene
  } catch (error) {
    await scene.stop()
    throw error
  }
}

const stepsIn = (out: string): StepResult[] => {
  const { hub, clusters } = JSON.parse(out) as { hub?: { steps: StepResult[] }; clusters: { steps: StepResult[] }[] }
  return [...(hub?.steps ?? []), ...clusters.flatMap(({ steps }) => steps)]
}

const shown = (all: readonly Stuck[]): string =>
  all.map(({ fault, why }) => `${fault} (${why})`).join(', ') || 'nothing'

/** As a person would, whose PATH has our programs and kubectl. */
export const inShell = (command: string, home: string): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const env = plainEnvironment()
  const path = [dirname(programPath('clusteradm')), dirname(controlPlaneBinary('kubectl')), env['PATH']].join(':')
  const options = { env: { ...env, PATH: path, HOME: home }, timeout: 240_000 }
  const child = execFile('/bin/sh', ['-e', '-c', command], options, (error, stdout, stderr) =>
    error ? reject(new Error(`${command}\n${stdout}${stderr}`, { cause: error })) : resolve(stdout),
  )
  child.stdin?.end()
  return promise
}

const join = async ({ hub, managed }: DoctorScene): Promise<void> => {
  const ticket = JSON.parse(await mustRun('clusteradm', ['get', 'token', '-o', 'json'], { plane: hub })) as Record<
    string,
    string
  >
  const place = ['--hub-apiserver', ticket['hub-apiserver']!, '--ca-hash', ticket['ca-hash']!]
  const env = { LANYARD_HUB_TOKEN: ticket['hub-token']! }
  await mustRun('clusteradm', ['join', ...place, '--cluster-name', 'c1', '--wait'], { plane: managed, env })
  await mustRun('clusteradm', ['accept', '--clusters', 'c1', '--wait'], { plane: hub })
}
