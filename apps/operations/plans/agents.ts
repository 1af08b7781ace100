import type { Queryable } from '../../../db/client.ts'
import { listUnserved } from '../../../db/operations/agents/rows.ts'
import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { isObject } from '../../shared/data/pointer.ts'
import type { Warning } from '../graph/types.ts'

const NAMED = 3

/** Warns of steps that no agent could take now. They wait for one when they run, so the plan may still start. */
export const warnOfAgents = async (
  tx: Queryable,
  nodes: readonly PlanNode[],
  fetchesWork: (pool: string) => boolean,
): Promise<Warning[]> => {
  const asked = Map.groupBy(nodes.flatMap(asksOf), ({ pool, labels }) => JSON.stringify([pool, labels]))
  const wanted = [...asked.values()].flatMap((all) => {
    const [{ pool, labels } = { pool: '', labels: {} }] = all
    return fetchesWork(pool) ? [{ pool, labels, ids: all.map(({ node_id }) => node_id) }] : []
  })
  return (await listUnserved(tx, wanted)).map(({ pool, labels, ids, seen_at }) => {
    const shown = Object.entries(labels).map((pair) => pair.join('='))
    const steps = `${ids.slice(0, NAMED).join(', ')}${ids.length > NAMED ? `, +${ids.length - NAMED}` : ''}`
    const who = `pool "${pool}"${shown.length > 0 ? ` with ${shown.join(', ')}` : ''}`
    return {
      code: 'no_agent',
      message: `No agent of the ${who} asks for work now, so these steps would wait: ${steps}. Last seen: ${seen_at ?? 'never'}.`,
      values: { pool, labels: shown.join(', '), steps, seen: seen_at ?? '' },
    }
  })
}

/** The pool and labels that a step asks for, as far as the plan knows them. */
const asksOf = ({ node_id, executor, pool = 'default', with: values, compensate }: PlanNode) =>
  [{ executor, with: values }, ...(compensate ? [compensate] : [])].flatMap((act) => {
    if (act.executor !== 'external') return []
    const given = isObject(act.with) && isObject(act.with.labels) ? Object.entries(act.with.labels) : []
    const labels = Object.fromEntries(
      given.filter((pair): pair is [string, string] => typeof pair[1] === 'string').sort(),
    )
    return [{ node_id, pool, labels }]
  })
