import { UsageError } from '../../main/flags.ts'
import { differenceOf } from '../access/difference.ts'
import { differencePicture } from '../access/drawing.ts'
import { readFleet, type FleetGrant } from '../access/fleet.ts'
import { readSaved } from '../access/saved.ts'
import { placeText, subjectText, throughText } from '../access/words.ts'
import { withHub } from '../cluster.ts'
import { defineCommand } from '../command.ts'
import { checkedName } from '../names.ts'
import { drawn, pictureFlag } from '../picture.ts'

export default defineCommand({
  text: 'Compares what this hub has granted on two clusters, or on one cluster before and now. Rights are compared, not objects: who may what, and where.',
  flags: {
    from: { help: 'What access list -o json saved of the cluster, or - for stdin', default: '', value: 'FILE' },
    'exit-code': { help: 'End with 1 when they differ', default: false },
    ...pictureFlag,
  },
  args: [
    { name: 'CLUSTER', about: 'the first cluster', completes: 'clusters' },
    { name: 'OTHER', about: 'the second cluster', optional: true, completes: 'clusters' },
  ],
  examples: ['access diff c1 c2', 'access diff c1 --from before.json --exit-code'],
  run: async (cli) => {
    const { from, output } = cli.flags
    const [one = '', other] = cli.args.map((name) => checkedName('CLUSTER', name))
    if (other === undefined && !from)
      throw new UsageError('with what is it compared? Name a second cluster, or give --from FILE')
    if (other !== undefined && from) throw new UsageError('--from compares one cluster with its past: name only one')
    const saved = from ? (await readSaved(cli, from)).filter(({ cluster }) => cluster === one) : undefined
    if (saved?.length === 0)
      cli.progress.warn(`${from} holds nothing of cluster ${one}: everything that it has now is new`)
    return withHub(cli, async ({ client }) => {
      const clusters = other === undefined ? [one] : [one, other]
      const { grants } = await readFleet(cli, client, { clusters })
      const of = (name: string): FleetGrant[] => grants.filter(({ cluster }) => cluster === name)
      const differences = other === undefined ? differenceOf(saved!, of(one)) : differenceOf(of(one), of(other))
      const sides = other === undefined ? ([`${one} before`, `${one} now`] as const) : ([one, other] as const)
      const picture = drawn(output, () => differencePicture(differences, sides))
      await cli.out.data(
        output,
        differences,
        () =>
          picture ?? {
            columns: ['Only', 'Subject', 'Where', 'Right', 'Through'],
            rows: differences.map((found) => [
              found.change === 'only-first' ? sides[0] : sides[1],
              subjectText(found),
              placeText(found.place),
              found.right,
              found.through.map((through) => throughText({ through })).join(', '),
            ]),
            none: `No difference between ${sides[0]} and ${sides[1]}.`,
          },
      )
      return cli.flags['exit-code'] && differences.length > 0 ? 1 : 0
    })
  },
})
