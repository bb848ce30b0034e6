import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { joinAdvice, joinCommand, ticketFor } from '../token.ts'
import { loopbackWarning } from '../loopback.ts'

export default defineCommand({
  text: 'Makes a token with which a cluster can ask to join this hub, and prints the command to run there.',
  flags: {
    ttl: {
      help: 'How long it can be used: seconds, or 30m, 2h',
      default: 3600,
      seconds: true,
      value: 'TIME',
      aliases: ['expiration-seconds'],
    },
    'use-bootstrap-token': { help: 'A bootstrap token of Kubernetes instead of an account token', default: false },
    output: {
      help: 'How to print: text, json or yaml',
      default: 'text',
      short: 'o',
      value: 'FORM',
      choices: ['text', 'table', 'json', 'yaml'],
    },
  },
  examples: ['get token', 'get token -o json'],
  run: (cli) =>
    withHub(cli, async (cluster) => {
      const { ttl, output, 'use-bootstrap-token': bootstrapToken } = cli.flags
      const ticket = await ticketFor(cli, cluster, { seconds: ttl, bootstrapToken })
      const warning = ticket['registration-auth'] === 'grpc' ? undefined : loopbackWarning(ticket['hub-apiserver'])
      if (warning) cli.progress.warn(warning)
      const data = { ...ticket, 'join-command': joinCommand(cli.program, ticket) }
      await cli.out.data(output, data, () => `token=${ticket['hub-token']}\n${joinAdvice(cli, ticket)}`)
    }),
})
