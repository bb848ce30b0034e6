import { clusterNamed, credentialsFor, hubNamespaceFlag, readDirectory } from '../aws/directory.ts'
import { explanationOf, explanationText } from '../aws/explanation.ts'
import { regionFlag, regionOf, withAws } from '../aws/session.ts'
import { withCluster } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'

export default defineCommand({
  text: 'Walks the chain of a cluster’s AWS identity link by link, first in Kubernetes, then in AWS, and says which link fails and what to change, in Kubernetes or in IAM. Ends with 1 when it does not work.',
  flags: {
    aws: { help: 'Ask AWS too; --no-aws looks at Kubernetes alone', default: true },
    ...regionFlag,
    ...hubNamespaceFlag,
    ...outputFlag,
  },
  args: [{ name: 'CLUSTER', about: 'an AWSCluster, as NAMESPACE/NAME' }],
  examples: ['aws explain team-a/prod', 'aws explain team-a/prod --no-aws -o json'],
  run: (cli) =>
    withCluster(cli, async ({ client }) => {
      const directory = await readDirectory(cli, client, regionOf(cli))
      const cluster = await clusterNamed(directory, cli.args[0] ?? '')
      const explanation = cli.flags.aws
        ? await withAws(cli, async (session) => {
            const cache = credentialsFor(client, session)
            try {
              return await explanationOf(directory, cluster, cache, cli.signal)
            } finally {
              cache.close()
            }
          })
        : await explanationOf(directory, cluster, undefined, cli.signal)
      await cli.out.data(cli.flags.output, explanation, () => explanationText(explanation))
      return explanation.works ? 0 : 1
    }),
})
