import { readFileSync } from 'node:fs'
import { build } from '../tools/build.ts'
import { progress } from './measure.ts'

let built = false

/** A file of the built project: what users run, with the measured processes beside it. Made once a run, so that nothing old is measured. */
export const builtFile = (path: string): string => {
  if (!built) progress(`built ${build('dist', ['bench/**/*.ts', 'testkit/jumping-clock.ts'])} modules to dist/`)
  built = true
  return new URL(`../dist/${path}`, import.meta.url).pathname
}

/** The program as users run it. */
export const builtProgram = (): string => builtFile('bin/lanyard')

/** The flags of Node that the program is started with: those in its first line. */
export const programFlags = (): string[] => {
  const [line = ''] = readFileSync(new URL('../bin/lanyard', import.meta.url), 'utf8').split('\n')
  return line.split(' ').filter((word) => word.startsWith('--'))
}
