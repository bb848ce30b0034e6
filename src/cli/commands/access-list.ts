import { grantsPicture } from '../access/drawing.ts'
import { isGranted, readFleet } from '../access/fleet.ts'
import { scopeFlags, scopeOf } from '../access/scope.ts'
import { placeText, roleText, rulesText, subjectText, throughText } from '../access/words.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { drawn, pictureFlag } from '../picture.ts'

export default defineCommand({
  text: 'Lists everything that this hub has granted on its clusters. Saved with -o json, it can be compared later: access diff.',
  flags: {
    ...scopeFlags,
    all: { help: 'Also what waits for approval or cannot be delivered', default: false },
    ...pictureFlag,
  },
  examples: ['access list --cluster c1', 'access list --cluster c1 -o json > before.json'],
  run: (cli) => {
    const scope = scopeOf(cli.flags)
    return withHub(cli, async ({ client }) => {
      const { grants } = await readFleet(cli, client, scope)
      const shown = cli.flags.all ? grants : grants.filter(isGranted)
      const picture = drawn(cli.flags.output, () => grantsPicture(shown))
      await cli.out.data(
        cli.flags.output,
        shown,
        () =>
          picture ?? {
            columns: ['Cluster', 'Subject', 'Where', 'Role', 'Allows', 'Through', 'State'],
            rows: shown.map((one) => [
              one.cluster,
              subjectText(one),
              placeText(one.place),
              roleText(one),
              rulesText(one.rules),
              throughText(one),
              one.state,
            ]),
            none: 'This hub has granted nothing there.',
          },
      )
    })
  },
})
