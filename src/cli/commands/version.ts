import { defineCommand, outputFlag } from '../command.ts'
import { version } from '../version.ts'

export default defineCommand({
  text: 'Prints the version of this program. It asks no cluster; get hub-info does.',
  flags: outputFlag,
  run: async ({ flags, out, program }) => {
    const facts = { program, version: version() }
    await out.data(flags.output, facts, () => `${program} version ${facts.version}`)
  },
})
