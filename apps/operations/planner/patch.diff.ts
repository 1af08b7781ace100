import { digest } from '../../shared/data/digest.ts'
import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import type { Running } from './patch.edit.ts'
import type { Patched } from './patch.ts'
import type { RiskLevel } from './risk.ts'

export type DiffGraph = {
  added: string[]
  removed: string[]
  changed: { node_id: string; fields: { path: string; before: unknown; after: unknown }[] }[]
  added_gates: string[]
  removed_gates: string[]
  max_parallel: { before: number; after: number } | null
  risk: { before: RiskLevel; after: RiskLevel } | null
}

/** Returns what a reader compares: nodes by id, members of changed ones by path. */
export const diffGraph = (running: Running, patched: Patched): DiffGraph => {
  const before = new Map(running.nodes.map((node) => [node.node_id, node]))
  const changed = patched.nodes.flatMap((node) => {
    const old = before.get(node.node_id)
    const fields = old ? [...fieldsOf(old, node, '')] : []
    return fields.length > 0 ? [{ node_id: node.node_id, fields }] : []
  })
  return {
    added: patched.added,
    removed: patched.removed,
    changed,
    added_gates: patched.added_gates,
    removed_gates: patched.removed_gates,
    max_parallel:
      patched.max_parallel === running.max_parallel
        ? null
        : { before: running.max_parallel, after: patched.max_parallel },
    risk: riskMove(running, patched),
  }
}

const riskMove = ({ risk_level: before }: Running, { weight }: Patched): DiffGraph['risk'] => {
  const after = weight?.risk.level ?? before
  return after === before ? null : { before, after }
}

function* fieldsOf(
  before: unknown,
  after: unknown,
  path: string,
): Generator<DiffGraph['changed'][number]['fields'][number]> {
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* fieldsOf(before[key], after[key], path + pointerOf(key))
  } else if (digest(before ?? null) !== digest(after ?? null))
    yield { path, before: before ?? null, after: after ?? null }
}

/** Identifies the graph of a revision, to which an approval of the patch is bound. */
export const resultHash = ({ nodes, gates, max_parallel }: Pick<Patched, 'nodes' | 'gates' | 'max_parallel'>): string =>
  digest({ nodes, gates: gates.toSorted((a, b) => (a.gate_id < b.gate_id ? -1 : 1)), max_parallel })
