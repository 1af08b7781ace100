import { and, asc, eq, gte } from 'drizzle-orm'
import type { PlanNode } from '../../apps/shared/contracts/operations/graph.ts'
import type { GraphPage, Profile } from '../../workflows/operation/state/types.ts'
import type { Db, Queryable } from '../client.ts'
import { gates, nodes, operations } from './tables.ts'
import { iso } from './views.ts'

/** Nodes a page. */
export const PAGE_NODES = 1000

export type GraphLimits = { max_parallel: number; slice_s: number; force_grace_s: number }

/**
 * One page of an operation's graph in the compact form of the reducer: nodes refer to each other by position (their
 * ordinal, dense from 0), what they have in common stands once. The first page brings gates and limits.
 */
export const loadGraph = (db: Db, operation_id: string, from: number, limits: GraphLimits): Promise<GraphPage> =>
  // One moment for the whole page: a patch may come between two statements.
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
      .where(eq(gates.operation_id, operation_id))
      .orderBy(asc(gates.ordinal), asc(gates.gate_id)),
    db
      .select({
        node_id: nodes.node_id,
        name: nodes.name,
        depends_on: nodes.depends_on,
        gate_ids: nodes.gate_ids,
        spec: nodes.spec,
        removed: nodes.removed,
      })
      .from(nodes)
      .where(and(eq(nodes.operation_id, operation_id), gte(nodes.ordinal, from)))
      .orderBy(asc(nodes.ordinal))
      .limit(PAGE_NODES),
  ])
  const position = new Map(ids.map(({ node_id }, index) => [node_id, index]))
  const gateAt = new Map(guarding.map(({ gate_id }, index) => [gate_id, index]))
  const profiles = new Map<string, number>()
  const page: GraphPage = {
    plan_revision: 1,
    profiles: [],
    nodes: rows.map(({ node_id, name, depends_on, gate_ids, spec, removed }) => {
      const profile = profileOf(spec, limits.slice_s)
      const key = JSON.stringify(profile)
      const index = profiles.get(key) ?? addProfile(profiles, key)
      if (removed) return [node_id, name, index, [], [], 1]
      return [node_id, name, index, places(position, depends_on), places(gateAt, gate_ids)]
    }),
    next: from + rows.length < ids.length && rows.length > 0 ? from + rows.length : null,
  }
  page.profiles = [...profiles.keys()].map((key) => JSON.parse(key) as Profile)
  if (from > 0) {
    page.plan_revision = await revisionOf(db, operation_id)
    return page
  }
  return { ...page, ...(await headOf(db, operation_id, guarding, limits)) }
}

const addProfile = (profiles: Map<string, number>, key: string): number => {
  profiles.set(key, profiles.size)
  return profiles.size - 1
}

const places = (positions: Map<string, number>, ids: readonly string[]): number[] =>
  ids.map((id) => {
    const place = positions.get(id)
    if (place === undefined) throw new Error(`the graph names "${id}", which it does not hold`)
    return place
  })

const profileOf = (spec: PlanNode, slice_s: number): Profile => ({
  kind: spec.kind,
  executor: spec.executor,
  join: spec.join,
  on_failure: spec.on_failure,
  retry: spec.retry,
  slice_s: Math.min(spec.timeouts.run_s, slice_s),
  when: spec.when !== undefined,
  catalog: spec.catalog !== undefined,
  undo: spec.compensate !== undefined,
  max_failures: spec.max_failures ?? null,
  wait: spec.kind === 'wait' ? (spec.with as NonNullable<Profile['wait']>) : null,
})

const revisionOf = async (db: Queryable, operation_id: string): Promise<number> => {
  const [row] = await db
    .select({ plan_revision: operations.plan_revision })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  return row?.plan_revision ?? 1
}

type Guarding = Pick<typeof gates.$inferSelect, 'gate_id' | 'status' | 'round' | 'policy'>

const headOf = async (
  db: Queryable,
  operation_id: string,
  guarding: readonly Guarding[],
  limits: GraphLimits,
): Promise<Pick<GraphPage, 'head' | 'plan_revision'>> => {
  const [row] = await db
    .select({
      plan_revision: operations.plan_revision,
      max_parallel: operations.max_parallel,
      deadline_at: iso(operations.deadline_at),
      constraints: operations.constraints,
    })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  if (!row) throw new Error(`no operation ${operation_id}`)
  const { on_deadline, not_before, pause_on_failure } = row.constraints as Partial<{
    on_deadline: 'graceful' | 'compensate'
    not_before: string
    pause_on_failure: boolean
  }>
  return {
    plan_revision: row.plan_revision,
    head: {
      gates: guarding.map(({ gate_id, status, round, policy }) => ({
        gate_id,
        on_reject: policy.on_reject,
        status: status as 'armed',
        round,
      })),
      max_parallel: Math.min(row.max_parallel, limits.max_parallel),
      deadline_at: row.deadline_at,
      on_deadline: on_deadline ?? 'graceful',
      not_before: not_before ?? null,
      pause_on_failure: pause_on_failure ?? false,
      force_grace_s: limits.force_grace_s,
    },
  }
}
