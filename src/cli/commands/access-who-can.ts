import { servedResources } from '../../kube/index.ts'
import { grantsPicture } from '../access/drawing.ts'
import { readFleet } from '../access/fleet.ts'
import { answerOf, questionFrom } from '../access/question.ts'
import { accessNamespace, accessNamespaceFlag, scopeFlags, scopeOf } from '../access/scope.ts'
import { placeText, subjectText, throughText } from '../access/words.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { drawn, pictureFlag } from '../picture.ts'

export default defineCommand({
  text: 'Says who may do something on which managed clusters, through which permission, from what this hub has granted. What clusters grant by themselves is not known here.',
  flags: {
    ...scopeFlags,
    ...accessNamespaceFlag,
    name: { help: 'On the object of this name', default: '', value: 'NAME' },
    ...pictureFlag,
  },
  args: [
    { name: 'VERB', about: 'what is done: get, list, update, … or *' },
    { name: 'RESOURCE', about: 'on what: pods, deployments.apps, pods/log, or a path such as /metrics' },
  ],
  examples: [
    'access who-can get secrets --cluster c1 -n shop',
    'access who-can "*" deployments.apps --clusterset prod -o json',
    'access who-can delete nodes -o dot | dot -Tsvg > who.svg',
  ],
  run: (cli) => {
    const { output, name } = cli.flags
    const scope = scopeOf(cli.flags)
    const namespace = accessNamespace(cli.flags)
    const [verb = '', resource = ''] = cli.args
    // Before anything is asked: a word that cannot be meant is refused without a hub.
    questionFrom([verb, resource], { name, namespace: namespace ?? '', served: [] })
    return withHub(cli, async ({ client }) => {
      const [{ resources: served }, { grants, clusters }] = await Promise.all([
        servedResources(client, { signal: cli.signal }),
        readFleet(cli, client, scope),
      ])
      const question = questionFrom([verb, resource], { name, namespace: namespace ?? '', served })
      if (question.warning) cli.progress.warn(question.warning)
      const found = grants.flatMap((grant) => {
        const answer = answerOf(grant, question)
        return answer ? [{ ...grant, ...answer }] : []
      })
      const picture = drawn(output, () => grantsPicture(found))
      await cli.out.data(
        output,
        found,
        () =>
          picture ?? {
            columns: ['Subject', 'Cluster', 'Where', 'Can', 'Through', 'State'],
            rows: found.map((one) => [
              subjectText(one),
              one.cluster,
              placeText(one.place),
              one.because ? `${one.can}: ${one.because}` : one.can,
              throughText(one),
              one.state,
            ]),
            none: `Nobody, by what this hub has granted on ${clusters.length === 1 ? `cluster ${clusters[0]}` : `${clusters.length} clusters`}.`,
          },
      )
    })
  },
})
