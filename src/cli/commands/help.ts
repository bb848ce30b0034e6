import { defineCommand } from '../command.ts'

export default defineCommand({
  text: 'Explains a command: help get clusters says the same as get clusters --help.',
  flags: {},
  args: [{ name: 'COMMAND', about: 'the words of the command', optional: true, many: true }],
  run: async (cli) => {
    const { run } = await import('../run.ts')
    return run({ ...cli, args: [...cli.args, '--help'], signal: cli.signal })
  },
})
