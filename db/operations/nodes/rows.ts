import { and, asc, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import type { Static } from 'typebox'
import type { GateStatus, NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import type { ArtifactQuery, NodeListQuery } from '../../../apps/shared/contracts/operations/nodes.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { coneOf, freeOf, type Progress } from '../../../workflows/operation/rules/nodes.ts'
import { equals, first, type Queryable, type Tx } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { eachText, iso, type Newest, operation_node_run_summary as run } from '../expressions.ts'
import { gates, node_attempts, nodes, operation_artifact_index } from '../tables/index.ts'

const columns = {
  ...pick(run, 'operation_id', 'node_id', 'name', 'kind', 'executor', 'target_id', 'group_id', 'state', 'generation'),
  ...pick(run, 'attempt', 'error_class', 'error_message', 'ready_at', 'gated_at', 'started_at', 'ended_at'),
  ...pick(run, 'waited_ms', 'ran_ms', 'progress', 'artifacts', 'log_lines', 'exception', 'held_by_patch'),
}

/** Rank of a row if failures come first: those that need a person precede everything else. */
const FAILURE_RANK = sql<number>`case ${run.state} when 'failed' then 0 when 'outcome_unknown' then 0 when 'compensation_failed' then 0 else 1 end`

export type NodeFilter = Pick<Static<typeof NodeListQuery>, 'state' | 'group' | 'target_id'> &
  Pick<Newest, 'after' | 'limit'> & { failed_first: boolean }

/** Nodes in rank order, or failures first; the key of a row is [rank, ordinal]. */
export const listNodes = (db: Queryable, operation_id: string, filter: NodeFilter) => {
  const rank = filter.failed_first ? FAILURE_RANK : sql<number>`0::int`
  return db
    .select({ node: columns, key: sql<string[]>`array[(${rank})::text, ${run.ordinal}::text]` })
    .from(run)
    .where(
      and(
        eq(run.operation_id, operation_id),
        filter.state && inArray(run.state, filter.state),
        filter.group === undefined ? undefined : eq(run.group_id, filter.group),
        filter.target_id === undefined ? undefined : eq(run.target_id, filter.target_id),
        filter.after && sql`(${rank}, ${run.ordinal}) > (${filter.after[0]}::int, ${filter.after[1]}::int)`,
      ),
    )
    .orderBy(rank, asc(run.ordinal))
    .limit(filter.limit)
}

/** One node: its row as readers see it, and the columns that only its own page needs. */
export const getNode = (db: Queryable, operation_id: string, node_id: string) =>
  db
    .select({
      node: columns,
      ...pick(nodes, 'spec', 'input_overrides', 'outputs', 'catalog', 'gate_ids', 'depends_on'),
    })
    .from(nodes)
    .innerJoin(run, and(eq(run.operation_id, nodes.operation_id), eq(run.node_id, nodes.node_id)))
    .where(equals(nodes, { operation_id, node_id }))
    .then(first)

const a = node_attempts
export const listAttempts = (db: Queryable, operation_id: string, node_id: string, attempt: number | undefined) =>
  db
    .select({
      ...pick(a, 'attempt', 'role', 'generation', 'fences', 'executor', 'pool', 'phase', 'error'),
      started_at: iso(a.started_at),
      ended_at: iso(a.ended_at),
      heartbeat_at: iso(a.heartbeat_at),
      ...pick(a, 'progress', 'inputs'),
      log: { lines: a.log_lines, bytes: a.log_bytes, complete: a.log_complete },
    })
    .from(a)
    .where(and(equals(a, { operation_id, node_id }), attempt === undefined ? undefined : eq(a.attempt, attempt)))
    .orderBy(asc(a.started_at), asc(a.attempt))

export const listGatesOfNode = (db: Queryable, operation_id: string, gate_ids: string[]) =>
  gate_ids.length === 0
    ? Promise.resolve([])
    : db
        .select({ gate_id: gates.gate_id, question: gates.question, status: sql<GateStatus>`${gates.status}` })
        .from(gates)
        .where(and(eq(gates.operation_id, operation_id), inArray(gates.gate_id, gate_ids)))
        .orderBy(gates.gate_id)

const f = operation_artifact_index
type ArtifactFilter = Pick<Static<typeof ArtifactQuery>, 'node_id' | 'kind'> & Pick<Newest, 'after' | 'limit'>
export const listArtifacts = (db: Queryable, operation_id: string, { node_id, kind, after, limit }: ArtifactFilter) =>
  db
    .select({
      ...pick(f, 'artifact_id', 'node_id', 'attempt', 'name', 'kind', 'media_type', 'size', 'sha256', 'status', 'uri'),
      created_at: iso(f.created_at),
      expires_at: iso(f.expires_at),
    })
    .from(f)
    .where(
      and(
        eq(f.operation_id, operation_id),
        node_id === undefined ? undefined : eq(f.node_id, node_id),
        kind === undefined ? undefined : eq(f.kind, kind),
        after && sql`${f.artifact_id} > ${after[0]}::uuid`,
      ),
    )
    .orderBy(asc(f.artifact_id))
    .limit(limit)

export const getArtifact = (db: Queryable, operation_id: string, artifact_id: string) =>
  db
    .select({ ...pick(f, 'name', 'media_type', 'size', 'sha256', 'status', 'uri', 'content') })
    .from(f)
    .where(equals(f, { operation_id, artifact_id }))
    .then(first)

/**
 * A node and all nodes after it, with the columns that the rules of a command need; the control row locks out other
 * commands. The links are read first, because the rest of each row costs ten times as much and most cones are small.
 * They come as one value: 10,000 rows of arrays would keep this process busy ten times as long.
 */
export const listCone = async (tx: Queryable, operation_id: string, node_id: string) => {
  const [links] = await tx
    .select({
      all: sql<
        [string, string[], Progress][]
      >`coalesce(json_agg(json_build_array(node_id, depends_on, ${PROGRESS}) order by ordinal), '[]')`,
      decided: decidedBy(operation_id),
    })
    .from(nodes)
    .where(equals(nodes, { operation_id, removed: false }))
  const all = links?.all.map(([node_id, depends_on, progress]) => ({ node_id, depends_on, progress })) ?? []
  const cone = coneOf(all, node_id).map((node) => node.node_id)
  const free = freeOf(all)
  const rows = await tx
    .select({
      ...pick(nodes, 'node_id', 'name', 'kind', 'depends_on'),
      state: sql<NodeState>`${nodes.state}`,
      ...pick(nodes, 'generation', 'attempt'),
      left: sql<boolean>`${nodes.kind} = 'barrier' and ${nodes.state} = 'succeeded' and ${nodes.spec} ? 'max_failures'`,
      // Qualified by hand: a query over one table writes its columns without the table name.
      begun: sql<boolean>`exists (select from operations.node_attempts t where t.operation_id = operations.nodes.operation_id
        and t.node_id = operations.nodes.node_id and t.role = 'run' and t.generation = operations.nodes.generation)`,
      silent: sql<boolean>`exists (select from operations.executions e where e.operation_id = operations.nodes.operation_id
        and e.node_id = operations.nodes.node_id and e.attempt = operations.nodes.attempt and e.closed_at is null
        and coalesce(e.heartbeat_at, e.created_at) + make_interval(secs => e.heartbeat_s) < clock_timestamp())`,
      skippable: sql<boolean>`coalesce((${nodes.spec} ->> 'skippable')::boolean, true)`,
      has_compensation: sql<boolean>`${nodes.spec} -> 'compensate' is not null`,
    })
    .from(nodes)
    .where(and(equals(nodes, { operation_id, removed: false }), sql`${nodes.node_id} in ${eachText(cone)}`))
    .orderBy(asc(nodes.ordinal))
  const decided = new Map(Object.entries(links?.decided ?? {}))
  return rows.map((row) => ({ ...row, free: free.has(row.node_id), decided_by: decided.get(row.node_id) ?? null }))
}

/**
 * Who ended or reset which nodes in commands that are on their way to the engine, which writes the state or refuses
 * them. Past its time it refuses each.
 */
const decidedBy = (operation_id: string) => sql<Record<string, string>>`(
  select coalesce(jsonb_object_agg(d.node_id, c.actor ->> 'name'), '{}') from operations.operation_commands c
    cross join lateral (select c.payload ->> 'node_id' as node_id where c.kind = 'intervene'
      union all select jsonb_object_keys(c.payload -> 'generations') where c.kind = 'retry_node') d
  where c.operation_id = ${operation_id} and c.status in ('pending', 'sending', 'delivered')
    and (c.kind = 'retry_node' or (c.kind = 'intervene' and c.payload ->> 'type' in ('skip', 'mark_succeeded', 'mark_failed', 'mark_compensated')))
    and coalesce(c.not_after > clock_timestamp(), true))`

const PROGRESS = sql.raw(`case
  when state = 'pending' then case when spec ->> 'when' is not null then 'conditional' when kind = 'task' then 'task' else 'instant' end
  when state = 'succeeded' then 'good'
  when state in ('skipped', 'compensating', 'compensated', 'compensation_failed') then 'bad'
  when state = 'failed' and exception is not null then 'bad'
  else 'open' end`)

/** Rows before a command changes them, for its undo. */
export const readUndo = (tx: Tx, operation_id: string, node_ids: string[]) =>
  tx
    .select({
      ...pick(nodes, 'node_id', 'state', 'outputs', 'error', 'exception', 'catalog'),
      started_at: iso(nodes.started_at),
      ended_at: iso(nodes.ended_at),
      ...pick(nodes, 'spec_digest', 'input_overrides', 'gate_ids'),
    })
    .from(nodes)
    .where(and(eq(nodes.operation_id, operation_id), inArray(nodes.node_id, node_ids)))
    .orderBy(nodes.node_id)

/** Changes nodes still in the generation read, and increases it. Returns how many: if too few, another was faster. */
export const swapNodes = async (
  tx: Tx,
  operation_id: string,
  generations: Record<string, number>,
  set: PgUpdateSetSource<typeof nodes>,
): Promise<number> => {
  const wanted: SQL = sql`(select key as node_id, value::int as generation from jsonb_each_text(${JSON.stringify(generations)}::jsonb))`
  const rows = await tx
    .update(nodes)
    .set({ ...set, generation: sql`${nodes.generation} + 1`, updated_at: NOW })
    .where(
      and(
        eq(nodes.operation_id, operation_id),
        sql`(${nodes.node_id}, ${nodes.generation}) in (select w.node_id, w.generation from ${wanted} as w)`,
      ),
    )
    .returning({ node_id: nodes.node_id })
  return rows.length
}

/** The running nodes, and the number of those that have not started. */
export const countForStop = async (tx: Queryable, operation_id: string) => {
  const rows = await tx
    .select({ node_id: nodes.node_id, name: nodes.name, state: nodes.state })
    .from(nodes)
    .where(
      and(
        eq(nodes.operation_id, operation_id),
        inArray(nodes.state, ['pending', 'gated', 'ready', 'backoff', 'dispatched', 'running', 'compensating']),
      ),
    )
    .orderBy(asc(nodes.ordinal))
  const busy = new Set(['dispatched', 'running', 'compensating'])
  const running = rows.filter(({ state }) => busy.has(state)).map(({ node_id, name }) => ({ node_id, name }))
  return { running, not_started: rows.length - running.length }
}

const MAX_NAMED = 50

/** Nodes that only wait for the operation, which a resume starts first; at most 50. */
export const listStartable = (tx: Queryable, operation_id: string) =>
  tx
    .select({ node_id: nodes.node_id, name: nodes.name })
    .from(nodes)
    .where(and(eq(nodes.operation_id, operation_id), inArray(nodes.state, ['ready', 'backoff'])))
    .orderBy(asc(nodes.ordinal))
    .limit(MAX_NAMED)

/** Succeeded nodes that a compensating cancel would undo, last first. */
export const listCompensations = (tx: Queryable, operation_id: string) =>
  tx
    .select({ node_id: nodes.node_id, name: nodes.name })
    .from(nodes)
    .where(and(equals(nodes, { operation_id, state: 'succeeded' }), sql`${nodes.spec} -> 'compensate' is not null`))
    .orderBy(desc(nodes.ended_at), desc(nodes.ordinal))
