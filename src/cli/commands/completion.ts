import { defineCommand } from '../command.ts'
import { script, shells } from '../completion.ts'
import { UsageError } from '../../main/flags.ts'
import { closest } from '../../kube/words/index.ts'

export default defineCommand({
  text: 'Prints a script that lets a shell complete commands, flags, and the names of clusters, sets and contexts. Load it with: source <(lanyard completion bash), or for fish: lanyard completion fish | source',
  flags: {},
  args: [{ name: 'SHELL', about: shells.join(', ') }],
  examples: ['completion bash', 'completion zsh', 'completion fish'],
  run: async (cli) => {
    const shell = cli.args[0]!
    const known = shells.find((one) => one === shell)
    if (!known) {
      const near = closest(shell, shells)
      throw new UsageError(
        `completion is for ${shells.join(', ')}, not ${shell}${near ? `; did you mean ${near}?` : ''}`,
      )
    }
    cli.stdout.write(script(known, cli.program))
  },
})
