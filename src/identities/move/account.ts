import { createHash } from 'node:crypto'
import { annotation, AWSCluster } from '../../api/index.ts'
import { keyOf } from '../../kube/index.ts'
import { findCondition, sleep, type Clock } from '../../runtime/index.ts'
import { credentialRetrieved, describeReference, referenceOf, usageAllowed } from '../contract.ts'
import type { Bundle, Obstacle } from './bundle.ts'
import { askedByMove } from './marks.ts'
import { waysOf, type Prepared } from './prepared.ts'

const pollMs = 200

/**
 * Lets the target's own controller say which account it reaches for each way into AWS that the clusters take: an AWSCluster that
 * nobody builds, with the same identity, region and account. Whoever moves a cluster need not have its credentials, and would not
 * know those of the target's controller.
 */
export const askController = async (
  { bundle, target }: Prepared,
  { clock, signal, seen }: { clock: Clock; signal: AbortSignal; seen: (what: string) => void },
): Promise<Obstacle[]> => {
  const clusters = target.client.of(AWSCluster, bundle.namespace)
  const questions = questionsOf(bundle)
  try {
    for (const { cluster, name } of questions) {
      await clusters.delete(name, { signal }) // of a run that was cut off
      const { region, partition, accountID } = cluster.spec ?? {}
      const spec = {
        identityRef: referenceOf(cluster) as NonNullable<AWSCluster['spec']>['identityRef'],
        ...(region ? { region } : {}),
        ...(partition ? { partition } : {}),
        ...(accountID ? { accountID } : {}),
      }
      const annotations = { [annotation.managedBy]: askedByMove }
      await clusters.create({ metadata: { namespace: bundle.namespace, name, annotations }, spec }, { signal })
    }
    const obstacles: Obstacle[] = []
    for (const { cluster, name } of questions) {
      const by = describeReference(referenceOf(cluster))
      for (;;) {
        const verdict = verdictOn(await clusters.get(name, { signal }))
        if (verdict === 'yes') break
        if (typeof verdict === 'object') {
          obstacles.push({
            what: `the controller of the target does not reach the account of AWSCluster ${keyOf(cluster)} by ${by}`,
            next: verdict.no,
          })
          break
        }
        seen(`${by}: the controller of the target has not answered yet`)
        await sleep(clock, pollMs, signal)
      }
    }
    return obstacles
  } finally {
    // Not with the signal: also who is interrupted cleans up, and a run that could not do so is cleaned up after by the next.
    for (const { name } of questions) await clusters.delete(name).catch(() => false)
  }
}

/** What is asked on behalf of a bundle, and by which name. */
export const questionsOf = (bundle: Pick<Bundle, 'items'>): { cluster: AWSCluster; name: string }[] =>
  waysOf(bundle).map((cluster) => ({ cluster, name: questionName(cluster) }))

/** The same question has the same name, in the next run too. */
const questionName = (cluster: AWSCluster): string => {
  const { region, partition, accountID } = cluster.spec ?? {}
  const text = JSON.stringify([referenceOf(cluster), region, partition, accountID])
  return `move-check-${createHash('sha256').update(text).digest('hex').slice(0, 10)}`
}

/** Both conditions belong to it: a question is made anew each time. Unknown is no answer yet. */
const verdictOn = (cluster: AWSCluster): 'yes' | 'wait' | { no: string } => {
  const said = [usageAllowed, credentialRetrieved].map((type) => findCondition(cluster, type))
  const no = said.find((condition) => condition?.status === 'False')
  if (no) return { no: no.message || no.reason || 'it does not say why' }
  return said.every((condition) => condition?.status === 'True') ? 'yes' : 'wait'
}
