import type { Patch } from '../../shared/contracts/operations/patches.ts'
import { digest } from '../../shared/data/digest.ts'
import { pick } from '../../shared/data/pick.ts'
import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import type { Running } from './patch.edit.ts'
import type { Patched } from './patch.ts'

export type DiffGraph = Required<Patch['diff_graph']>

/** Returns what a reader compares: nodes by id, members of changed ones by path. */
export const diffGraph = (running: Running, patched: Patched): DiffGraph => {
  const before = new Map(running.nodes.map((node) => [node.node_id, node]))
  const changed = patched.nodes.flatMap((node) => {
    const old = before.get(node.node_id)
    const fields = old ? [...fieldsOf(old, node, '')] : []
    return fields.length > 0 ? [{ node_id: node.node_id, fields }] : []
  })
  return {
    ...pick(patched, 'added', 'removed', 'added_gates', 'removed_gates'),
    changed,
    max_parallel:
      patched.max_parallel === running.max_parallel
        ? null
        : { before: running.max_parallel, after: patched.max_parallel },
    risk: riskMove(running, patched),
  }
}

/** Whether it shows no change of the graph itself. A gate's guards are not shown, and its risk is no part of it. */
export const isEmpty = ({ changed, max_parallel, ...diff }: DiffGraph): boolean =>
  max_parallel === null &&
  [changed, diff.added, diff.removed, diff.added_gates, diff.removed_gates].every(({ length }) => length === 0)

const riskMove = ({ risk_level: before }: Running, { weight }: Patched): DiffGraph['risk'] => {
  const after = weight?.risk.level ?? before
  return after === before ? null : { before, after }
}

function* fieldsOf(
  before: unknown,
  after: unknown,
  path: string,
): Generator<DiffGraph['changed'][number]['fields'][number]> {
  // Most nodes of a large graph are the same objects before and after.
  if (before === after) return
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* fieldsOf(before[key], after[key], path + pointerOf(key))
  } else if (digest(before ?? null) !== digest(after ?? null))
    yield { path, before: before ?? null, after: after ?? null }
}

/** Identifies the graph of a revision, to which an approval of the patch is bound. */
export const resultHash = ({ nodes, gates, max_parallel }: Pick<Patched, 'nodes' | 'gates' | 'max_parallel'>): string =>
  digest({ nodes, gates: gates.toSorted((a, b) => (a.gate_id < b.gate_id ? -1 : 1)), max_parallel })
