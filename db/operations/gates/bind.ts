import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm'
import type { GateStatus, GateSubject } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { isObject, tokensOf } from '../../../apps/shared/data/pointer.ts'
import { type Queryable, type Tx, updateRows } from '../../client.ts'
import { gates, nodes } from '../tables/index.ts'
import type { NewSubject } from './ask.ts'

/**
 * Gates whose policy names upstream outputs (`binds`), with current values (operations.md 3.3). A reference is
 * `nodes/<node or step>/outputs/<pointer>`, and one to a step binds all its nodes. Only those whose subject changes.
 */
export const listRebound = async (
  db: Queryable,
  operation_id: string,
  of: { gate_id: string } | { status: GateStatus[] },
): Promise<NewSubject[]> => {
  const own = eq(gates.operation_id, operation_id)
  const bound = await db
    .select({ gate_id: gates.gate_id, policy: gates.policy, subject: gates.subject, digest: gates.digest })
    .from(gates)
    .where(
      and(
        own,
        'gate_id' in of ? eq(gates.gate_id, of.gate_id) : inArray(gates.status, of.status),
        sql`jsonb_array_length(${gates.policy} -> 'binds') > 0`,
      ),
    )
  if (bound.length === 0) return []
  const having = await db
    .select({ node_id: nodes.node_id })
    .from(nodes)
    .where(and(eq(nodes.operation_id, operation_id), isNotNull(nodes.outputs)))
    .orderBy(nodes.ordinal)
  const ids = having.map(({ node_id }) => node_id)
  const rebound: NewSubject[] = []
  for (const { gate_id, policy, subject, digest: before } of bound) {
    const places = policy.binds.flatMap((reference) => placesOf(reference, ids))
    const next: GateSubject = { ...subject, bound_outputs: await readBound(db, operation_id, places) }
    const now = digest(next)
    if (now !== before) rebound.push({ gate_id, subject: next, digest: now })
  }
  return rebound
}

type Place = { node_id: string; pointer: string }

const placesOf = (reference: string, ids: readonly string[]): Place[] => {
  const [, name = '', pointer = ''] = /^nodes\/([^/]+)\/outputs(\/.*)?$/.exec(reference) ?? []
  return ids.filter((id) => id === name || id.startsWith(`${name}.`)).map((node_id) => ({ node_id, pointer }))
}

/** How much of the outputs a subject has in full, in characters, and how many outputs are read at a time. */
const MOST = 4_000_000
const PAGE = 50

/** An output and its length; what does not fit comes as a digest of its text, and of a preview also the short members. */
type Output = { value: unknown; length: number; whole: string; rest: Record<string, unknown> | null }

/**
 * Reads the outputs page by page: together, those of a bulk change need more memory than a process has. Those that are
 * not shown stay in the database, which takes their digests: to read and hash them here takes too long for a gate.
 */
const readBound = async (db: Queryable, operation_id: string, places: readonly Place[]) => {
  const bound: GateSubject['bound_outputs'] = []
  let left = MOST
  for (let from = 0; from < places.length; from += PAGE) {
    const page = places.slice(from, from + PAGE)
    const asked = page.map(({ node_id, pointer }, at) => ({ at, node_id, path: tokensOf(pointer) }))
    const { rows } = await db.execute<Output>(sql`
      select case when length(t) <= ${left} then v end as value, coalesce(length(t), 0) as length,
        'sha256:' || encode(sha256(convert_to(t, 'UTF8')), 'hex') as whole,
        case when jsonb_typeof(v) = 'object' and jsonb_typeof(v -> 'changes') = 'array' then v - '{changes,kinds}'::text[] end as rest
      from jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) as place(at int, node_id text, path text[])
      left join ${nodes} n on n.operation_id = ${operation_id} and n.node_id = place.node_id
      cross join lateral (select n.outputs #> place.path as v offset 0) as found
      cross join lateral (select v::text as t offset 0) as written
      order by place.at`)
    for (const [at, { node_id, pointer }] of page.entries()) {
      const { value, length, whole, rest } = rows[at] as Output
      const fits = length <= left
      if (fits) left -= length
      bound.push({ pointer: `nodes/${node_id}/outputs${pointer}`, value: fits ? value : shortOf(whole, rest) })
    }
  }
  return bound
}

const SHORT = 2_000

/** Of a preview, its plan stays in any case: evidence names the saved plan that was approved. */
const shortOf = (whole: string, rest: Output['rest']) => {
  if (!rest) return { whole }
  const { targets: _t, place: _p, ...less } = rest
  const { plan } = rest
  const short = [rest, less].map((members) => ({ ...members, changes: [] }))
  const kept = [...short, ...(isObject(plan) ? [{ plan }] : [])].find((one) => JSON.stringify(one).length <= SHORT)
  return { ...kept, whole }
}

/** Fixes the bound outputs of a gate that is about to open. */
export const bindOutputs = async (tx: Tx, operation_id: string, gate_id: string): Promise<void> => {
  for (const { subject, digest: now } of await listRebound(tx, operation_id, { gate_id }))
    await updateRows(tx, { operation_id, gate_id, status: 'armed' }, gates, { subject, digest: now })
}
