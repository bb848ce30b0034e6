import { build } from '../tools/build.ts'
import { progress } from './measure.ts'

/** What users run: the sources without their types. Made anew, so that no old build is measured. */
export const builtProgram = (): string => {
  progress(`built ${build('dist')} modules to dist/`)
  return new URL('../dist/bin/lanyard', import.meta.url).pathname
}
