/** The program. Each command is loaded when it is called, so that none pays for the others. */
import { enableCompileCache } from 'node:module'

enableCompileCache()

interface Command {
  about: string
  run: (args: string[]) => Promise<number>
}

const commands: Record<string, Command> = {
  hub: { about: 'Run the hub', run: async (args) => (await import('../main/hub.ts')).hub(args, process.env) },
  agent: {
    about: 'Run the agent of a managed cluster',
    run: async (args) => (await import('../main/agent.ts')).agent(args, process.env),
  },
}

const [name = '', ...args] = process.argv.slice(2)
const command = commands[name]
if (command) process.exitCode = await command.run(args)
else {
  const asked = name === '' || name === 'help' || name === '--help' || name === '-h'
  const list = Object.entries(commands).map(([of, { about }]) => `  ${of.padEnd(8)}${about}`)
  const problem = asked ? [] : [`there is no command ${name}`, '']
  const text = [
    ...problem,
    'Usage: lanyard COMMAND [flags]',
    '',
    ...list,
    '',
    'lanyard COMMAND --help explains one.',
    '',
  ]
  const out = asked ? process.stdout : process.stderr
  out.write(text.join('\n'))
  process.exitCode = asked ? 0 : 2
}
