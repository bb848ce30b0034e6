import { keyOf, type KubeObject } from '../../kube/index.ts'
import { isPausable } from './marks.ts'
import { progressIn, type Prepared } from './prepared.ts'
import { idThere } from './target.ts'

/** What becomes of one object. */
export interface PlanLine {
  kind: string
  name: string
  /** What happens on the target. */
  target: 'create' | 'keep' | 'finish'
  /** What happens at the source. */
  source: 'delete' | 'keep'
  note: string
}

/** The plan of a move, in the order in which it is carried out. */
export const planOf = (move: Prepared): PlanLine[] => {
  const { bundle, present, target, source } = move
  return bundle.items.map((item): PlanLine => {
    const there = present.objects.get(idThere(bundle, item, target))
    const progress = isPausable(item.resource) ? progressIn(move, item) : undefined
    return {
      kind: item.resource.kind,
      name: keyOf(item.object),
      target: there ? (progress === 'coming' || progress === 'home' ? 'finish' : 'keep') : 'create',
      source: item.fate === 'move' && source ? 'delete' : 'keep',
      note: noteOn(item.object, there, idThere(bundle, item, target)),
    }
  })
}

const noteOn = (here: KubeObject, there: KubeObject | undefined, id: string): string => {
  const [, namespace, name] = id.split('/')
  const moved = (here.metadata.namespace ?? '') !== namespace ? `becomes ${namespace}/${name}` : ''
  return [moved, there ? 'is there already' : ''].filter(Boolean).join(', ')
}
