import { defineCommand } from '../command.ts'

export default defineCommand({
  text: 'Prints what could come next on a command line, for the scripts of completion.',
  flags: {},
  args: [{ name: 'WORD', about: 'the words so far, the last one unfinished', optional: true, many: true }],
  run: async (cli) => {
    const [{ candidatesFor }, { root }] = await Promise.all([import('../candidates.ts'), import('../run.ts')])
    for (const { word, about } of await candidatesFor(cli, root, cli.args)) cli.out.line(`${word}\t${about}`)
  },
})
