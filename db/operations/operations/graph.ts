import { and, asc, eq, gte, ne, sql } from 'drizzle-orm'
import { pick, pluck } from '../../../apps/shared/data/pick.ts'
import type { GraphPage } from '../../../workflows/operation/state/events.ts'
import type { Db, Queryable } from '../../client.ts'
import { revisionNow } from '../commands/rows.ts'
import { iso } from '../expressions.ts'
import { gates, nodes, operation_control, operations } from '../tables/index.ts'
import { compactHead, compactNodes } from './compact.ts'

const PAGE_NODES = 1000

export type GraphLimits = { max_parallel: number; slice_s: number; force_grace_s: number }

/**
 * One page of an operation's graph in the reducer's compact form. Nodes refer to each other by position (their ordinal,
 * dense from 0), and common values appear once. The first page contains gates and limits.
 */
export const loadGraph = (db: Db, operation_id: string, from: number, limits: GraphLimits): Promise<GraphPage> =>
  // One snapshot for the whole page: a patch may commit between two statements.
  db.transaction((tx) => readPage(tx, operation_id, from, limits), {
    isolationLevel: 'repeatable read',
    accessMode: 'read only',
  })

const readPage = async (db: Queryable, operation_id: string, from: number, limits: GraphLimits): Promise<GraphPage> => {
  const [ids, guarding, rows] = await Promise.all([
    db
      .select({ node_id: nodes.node_id })
      .from(nodes)
      .where(eq(nodes.operation_id, operation_id))
      .orderBy(asc(nodes.ordinal)),
    db
      .select({ gate_id: gates.gate_id, status: gates.status, round: gates.round, policy: gates.policy })
      .from(gates)
      // An intervention that a second person must approve guards no node: the engine learns of it when it passes.
      .where(and(eq(gates.operation_id, operation_id), ne(gates.kind, 'intervention')))
      .orderBy(asc(gates.ordinal), asc(gates.gate_id)),
    db
      .select({ ...pick(nodes, 'node_id', 'name', 'depends_on', 'gate_ids', 'spec', 'removed') })
      .from(nodes)
      .where(and(eq(nodes.operation_id, operation_id), gte(nodes.ordinal, from)))
      .orderBy(asc(nodes.ordinal))
      .limit(PAGE_NODES),
  ])
  const page: GraphPage = {
    plan_revision: 1,
    ...compactNodes(
      rows,
      ids.map(({ node_id }) => node_id),
      pluck(guarding, 'gate_id'),
      limits.slice_s,
    ),
    next: from + rows.length < ids.length && rows.length > 0 ? from + rows.length : null,
  }
  if (from > 0) {
    page.plan_revision = await revisionNow(db, operation_id)
    return page
  }
  return { ...page, ...(await headOf(db, operation_id, guarding, pluck(ids, 'node_id'), limits)) }
}

type Guarding = Pick<typeof gates.$inferSelect, 'gate_id' | 'status' | 'round' | 'policy'>

const headOf = async (
  db: Queryable,
  operation_id: string,
  guarding: readonly Guarding[],
  ids: readonly string[],
  limits: GraphLimits,
) => {
  const [row] = await db
    .select({
      ...pick(operations, 'plan_revision', 'max_parallel', 'constraints'),
      deadline_at: iso(operations.deadline_at),
      command_seq: operation_control.command_seq,
    })
    .from(operations)
    .innerJoin(operation_control, eq(operation_control.operation_id, operations.operation_id))
    .where(eq(operations.operation_id, operation_id))
  if (!row) throw new Error(`no operation ${operation_id}`)
  const entries = guarding.length === 0 ? new Set() : await listEntryGates(db, operation_id)
  const known = guarding.map((gate) => ({ ...gate, entry: entries.has(gate.gate_id) }))
  return {
    plan_revision: row.plan_revision,
    head: compactHead(known, ids, row.constraints, {
      max_parallel: Math.min(row.max_parallel, limits.max_parallel),
      most_parallel: limits.max_parallel,
      command_seq: row.command_seq,
      deadline_at: row.deadline_at,
      force_grace_s: limits.force_grace_s,
    }),
  }
}

/** Gates that guard every first node: before they pass, the operation needs no leases. */
const listEntryGates = async (db: Queryable, operation_id: string): Promise<Set<string>> => {
  const { rows } = await db.execute<{ gate_id: string }>(sql`
    select gate_id from ${gates} g where operation_id = ${operation_id} and not exists (
      select from ${nodes} n where n.operation_id = ${operation_id} and n.depends_on = '{}' and not n.removed
        and g.gate_id <> all(n.gate_ids))`)
  return new Set(pluck(rows, 'gate_id'))
}
