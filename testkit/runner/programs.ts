import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Container } from './kinds.ts'

/** Which program a container's command means, by its last path element. */
export type Programs = Readonly<Record<string, string>>

/** This checkout's own. */
export const ownPrograms: Programs = { lanyard: fileURLToPath(new URL('../../bin/lanyard', import.meta.url)) }

/** The program of a command or, without one, of the image: an image of ours is called as the program that it starts. */
export const programOf = (programs: Programs, command: string, container: Container): string => {
  if (command) return programs[basename(command)] ?? command
  const image = basename(container.image ?? '').replace(/[:@].*$/, '')
  const found = programs[image]
  if (!found) throw new Error(`container ${container.name} has no command, and no program is known for image ${image}`)
  return found
}
