import { grantsPicture } from '../access/drawing.ts'
import { isGranted, readFleet } from '../access/fleet.ts'
import { scopeFlags, scopeOf } from '../access/scope.ts'
import { identityFrom, isFor } from '../access/subject.ts'
import { placeText, roleText, rulesText, throughText } from '../access/words.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { drawn, pictureFlag } from '../picture.ts'

export default defineCommand({
  text: 'Says what somebody may do on the managed clusters, through which permission, from what this hub has granted. Service accounts are in the groups that Kubernetes puts them into; the groups of people are known to nobody here: name them.',
  flags: {
    ...scopeFlags,
    groups: { help: 'Groups that the subject is in, with commas or repeated', default: [], value: 'NAMES' },
    all: { help: 'Also what waits for approval or cannot be delivered', default: false },
    ...pictureFlag,
  },
  args: [{ name: 'SUBJECT', about: 'who: user:NAME, group:NAME, sa:NAMESPACE/NAME or msa:NAME' }],
  examples: ['access of user:ada --groups ops', 'access of sa:shop/web --cluster c1', 'access of msa:ci -o mermaid'],
  run: (cli) => {
    const [word = ''] = cli.args
    const { output, groups, all } = cli.flags
    const scope = scopeOf(cli.flags)
    const identity = identityFrom(word, groups)
    return withHub(cli, async ({ client }) => {
      const { grants, accountNamespace } = await readFleet(cli, client, scope)
      const found = grants
        .filter((grant) => all || isGranted(grant))
        .flatMap((grant) => {
          const how = isFor(grant, identity, accountNamespace)
          return how ? [{ ...grant, ...how }] : []
        })
      const picture = drawn(output, () => grantsPicture(found))
      await cli.out.data(
        output,
        found,
        () =>
          picture ?? {
            columns: ['Cluster', 'Where', 'Role', 'Allows', 'Through', 'State', 'As'],
            rows: found.map((one) => [
              one.cluster,
              placeText(one.place),
              roleText(one),
              rulesText(one.rules),
              throughText(one),
              one.state,
              one.group ? `member of ${one.group}` : '',
            ]),
            none: `This hub has granted nothing to ${word}.`,
          },
      )
    })
  },
})
