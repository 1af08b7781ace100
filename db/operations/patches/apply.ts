import { and, eq, inArray, sql } from 'drizzle-orm'
import type { PlanGate, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, type Tx, updateRows } from '../../client.ts'
import { NOW } from '../../rows.ts'
import type { TimelineEvent } from '../facts/state.ts'
import { afresh, involvedWith } from '../gates/ask.ts'
import {
  askedService,
  listStanding,
  nextRound,
  settleRestored,
  statusBefore,
  waitingBefore,
  waitingGates,
} from '../gates/rows.ts'
import { gates, nodes, operation_control, operation_graph_view, operations } from '../tables/index.ts'
import { type GateNow, movePatch, type Revision, type RunningRows } from './rows.ts'
import { askAfterUndo, saveUsedVotes, type UsedGate, usedColumns, usedFacts, usedGates } from './used.ts'

type Fact = Omit<TimelineEvent, 'actor'>
export type Written = {
  plan_revision: number
  generations: Record<string, number>
  gates: Record<string, GateNow>
  events: Fact[]
  undo: Record<string, unknown>
}

/**
 * Writes a graph as the next revision: nodes, gates, drawing, limits, in the caller's transaction, which holds the
 * control row. Touched nodes start a new generation, so a claim in flight under the old graph is refused.
 */
export const writeRevision = async (tx: Tx, revision: Revision): Promise<Written> => {
  const { operation_id, patch_id, running, base_revision, graph, result_hash } = revision
  const plan_revision = base_revision + 1
  const known = new Map(running.nodes.map((row) => [row.node_id, row]))
  const used = await usedGates(tx, revision)
  const guarding = guardingOf(guardedBy(revision.gates, used))
  const changed = revision.nodes.filter(({ node_id }) => known.has(node_id))
  const added = revision.nodes.filter(({ node_id }) => !known.has(node_id))
  await updateNodes(tx, operation_id, changed, guarding)
  await removeNodes(tx, operation_id, revision.removed)
  await addNodes(tx, operation_id, added, guarding, running.nodes.length)
  const moved = await moveGates(tx, revision, used, plan_revision)
  await tx.insert(operation_graph_view).values({ operation_id, plan_revision, graph, plan_hash: result_hash, patch_id })
  await updateRows(tx, { operation_id }, operations, {
    plan_revision,
    max_parallel: revision.max_parallel.after,
    risk_level: revision.risk_level.after,
    open_gates: waitingGates(operation_id),
    involved: involvedWith(revision.proposers),
  })
  const gone = [...changed.map(({ node_id }) => node_id), ...revision.removed]
  const before = gone.flatMap((id) => known.get(id) ?? [])
  return {
    plan_revision,
    generations: Object.fromEntries(before.map(({ node_id, generation }) => [node_id, generation + 1])),
    gates: moved.gates,
    events: [
      ...revision.removed.map((node_id) => ({ type: 'node.removed', node_id, patch_id })),
      ...added.map(({ node_id }) => ({ type: 'node.pending', node_id, patch_id })),
      ...moved.events,
    ],
    undo: {
      patch_id,
      base_revision,
      nodes: before.map((node) => pick(node, 'node_id', 'spec', 'spec_digest', 'gate_ids', 'state')),
      added: added.map(({ node_id }) => node_id),
      gates: moved.before,
      added_gates: moved.added,
      // A limit that someone sets meanwhile holds.
      ...(revision.max_parallel.before !== revision.max_parallel.after && {
        max_parallel: revision.max_parallel.before,
      }),
      risk_level: revision.risk_level.before,
    },
  }
}

/** A used gate that asks again now guards what the patch changes behind it. */
const guardedBy = (all: Revision['gates'], used: Map<string, UsedGate>): Revision['gates'] =>
  all.map((gate) => {
    const asking = used.get(gate.gate_id)
    return asking && 'guards' in asking ? { ...gate, guards: [...gate.guards, ...asking.guards].sort() } : gate
  })

const guardingOf = (all: readonly PlanGate[]) => {
  const guarding = new Map<string, string[]>()
  for (const { gate_id, guards } of all)
    for (const id of guards) guarding.set(id, [...(guarding.get(id) ?? []), gate_id])
  return guarding
}

const rowsOf = (specs: readonly (PlanNode & { spec_digest: string })[], guarding: Map<string, string[]>) =>
  JSON.stringify(
    specs.map(({ spec_digest, ...spec }, place) => ({
      place,
      node_id: spec.node_id,
      spec,
      spec_digest,
      depends_on: spec.depends_on,
      gate_ids: guarding.get(spec.node_id) ?? [],
    })),
  )

const updateNodes = (
  tx: Tx,
  operation_id: string,
  specs: readonly (PlanNode & { spec_digest: string })[],
  guarding: Map<string, string[]>,
) =>
  tx.execute(sql`
    update ${nodes} n set spec = r.spec, spec_digest = r.spec_digest, name = r.spec ->> 'name', executor = r.spec ->> 'executor',
      depends_on = r.depends_on, gate_ids = r.gate_ids, generation = n.generation + 1, state = 'pending', hold_patch_id = null,
      ready_at = null, gated_at = null, updated_at = clock_timestamp()
    from jsonb_to_recordset(${rowsOf(specs, guarding)}::jsonb) as r(node_id text, spec jsonb, spec_digest text, depends_on text[], gate_ids text[])
    where n.operation_id = ${operation_id} and n.node_id = r.node_id`)

const removeNodes = (tx: Tx, operation_id: string, node_ids: readonly string[]) =>
  tx
    .update(nodes)
    .set({
      removed: true,
      state: 'removed',
      hold_patch_id: null,
      generation: sql`${nodes.generation} + 1`,
      updated_at: NOW,
    })
    .where(and(eq(nodes.operation_id, operation_id), inArray(nodes.node_id, [...node_ids])))

/** New nodes come after all others: positions never change. */
const addNodes = (
  tx: Tx,
  operation_id: string,
  specs: readonly (PlanNode & { spec_digest: string })[],
  guarding: Map<string, string[]>,
  from: number,
) =>
  tx.execute(sql`
    insert into ${nodes} (operation_id, node_id, ordinal, name, kind, executor, target_id, group_id, depends_on, gate_ids, spec, spec_digest)
    select ${operation_id}::uuid, node_id, ${from} + place, spec ->> 'name', spec ->> 'kind', spec ->> 'executor',
           spec ->> 'target_id', spec ->> 'group', depends_on, gate_ids, spec, spec_digest
    from jsonb_to_recordset(${rowsOf(specs, guarding)}::jsonb)
      as r(place int, node_id text, spec jsonb, spec_digest text, depends_on text[], gate_ids text[])`)

/** Gates under the new graph: one asked or decided, but not used (used.ts), asks again if its subject moved. */
const moveGates = async (tx: Tx, revision: Revision, used: Map<string, UsedGate>, ordinal: number) => {
  const { operation_id, patch_id, running, removed_gates } = revision
  const now = guardedBy(revision.gates, used)
  const known = new Map(running.gates.map((row) => [row.gate_id, row]))
  const before: Record<string, unknown>[] = []
  const told: Record<string, GateNow> = {}
  const events: Fact[] = []
  for (const { gate_id, kind, question, policy, guards, subject, digest } of now) {
    const row = known.get(gate_id)
    const asking = used.get(gate_id)
    const decided = async (by: UsedGate) => {
      await saveUsedVotes(tx, operation_id, by, digest)
      const { now: stands, event } = usedFacts(revision, by, digest)
      told[gate_id] = stands
      events.push(event)
    }
    if (!row) {
      const gate = { operation_id, gate_id, kind, question, policy, guards, subject, digest, ordinal }
      await tx.insert(gates).values({ ...gate, ...(asking && usedColumns(asking, digest)) })
      events.push({ type: 'gate.armed', gate_id, patch_id, data: { round: 1 } })
      if (asking) await decided(asking)
      continue
    }
    if (row.digest === digest && row.guards.length === guards.length) continue
    before.push(undoOf(row))
    const passed = row.status === 'approved' || row.status === 'bypassed'
    const again = row.status === 'waiting' || (passed && row.consumed_at === null)
    const [moved] = await tx
      .update(gates)
      .set({
        guards,
        subject,
        digest,
        updated_at: NOW,
        ...(asking && usedColumns(asking, digest)),
        ...(again && { ...afresh(policy.deadline_s), status: 'waiting', round: row.round + 1 }),
      })
      .where(equals(gates, { operation_id, gate_id }))
      .returning({ round: gates.round, deadline_at: sql<string>`operations.iso(${gates.deadline_at})` })
    if (asking) await decided(asking)
    if (!again || !moved) continue
    told[gate_id] = { status: 'waiting', ...moved }
    events.push({
      type: 'gate.reopened',
      gate_id,
      patch_id,
      data: { round: moved.round, digest, ...askedService(policy) },
    })
  }
  for (const gate_id of removed_gates) {
    const row = known.get(gate_id)
    if (!row) continue
    before.push(undoOf(row))
    await updateRows(tx, { operation_id, gate_id }, gates, { status: 'cancelled', updated_at: NOW })
    told[gate_id] = { status: 'cancelled', round: row.round, deadline_at: null }
    events.push({ type: 'gate.cancelled', gate_id, patch_id, data: { round: row.round } })
  }
  const added = now.flatMap(({ gate_id }) => (known.has(gate_id) ? [] : [gate_id]))
  return { before, gates: told, events, added }
}

const undoOf = ({ kind: _kind, question: _question, policy: _policy, ...row }: RunningRows['gates'][number]) => row

type PatchUndo = {
  patch_id: string
  base_revision: number
  nodes: Record<string, unknown>[]
  added: string[]
  gates: Record<string, unknown>[]
  added_gates: string[]
  /** Only if the patch changed it. */
  max_parallel?: number
  /** Missing from undo data written before it was recorded. */
  risk_level?: string
}

/**
 * Undoes an approved patch that the engine did not adopt: the previous graph, as a further revision. Generations,
 * rounds and revisions only grow. The patch itself becomes not applicable; it can be proposed again.
 */
export const undoRevision = async (tx: Tx, operation_id: string, undo: PatchUndo, why: string): Promise<Fact[]> => {
  const { patch_id, base_revision } = undo
  await tx.execute(sql`
    update ${nodes} n set spec = r.spec, spec_digest = r.spec_digest, name = r.spec ->> 'name', executor = r.spec ->> 'executor',
      depends_on = (select coalesce(array_agg(d), '{}') from jsonb_array_elements_text(r.spec -> 'depends_on') d),
      gate_ids = r.gate_ids, removed = false, generation = n.generation + 1, updated_at = clock_timestamp(),
      state = case when n.state in ('removed', 'pending') then 'pending' else n.state end
    from jsonb_to_recordset(${JSON.stringify(undo.nodes)}::jsonb) as r(node_id text, spec jsonb, spec_digest text, gate_ids text[])
    where n.operation_id = ${operation_id} and n.node_id = r.node_id`)
  await removeNodes(tx, operation_id, undo.added)
  const stood = await listStanding(tx, operation_id, undo.gates)
  await tx.execute(sql`
    update ${gates} g set round = ${nextRound}, guards = r.guards, subject = r.subject, digest = r.digest, approved_digest = r.approved_digest,
      status = case when c.control = 'cancel' then g.status else ${statusBefore} end, ${waitingBefore},
      decided_by = r.decided_by, decided_at = r.decided_at, decided_command_id = r.decided_command_id,
      consumed_at = r.consumed_at, standing_at = null, updated_at = clock_timestamp()
    from jsonb_to_recordset(${JSON.stringify(undo.gates)}::jsonb) as r(gate_id text, round int, guards text[], subject jsonb, digest text,
      approved_digest text, status text, waiting_since timestamptz, deadline_at timestamptz, decided_by jsonb, decided_at timestamptz,
      decided_command_id uuid, consumed_at timestamptz), ${operation_control} c
    where g.operation_id = ${operation_id} and g.gate_id = r.gate_id and c.operation_id = g.operation_id
      and (g.consumed_at is null or r.consumed_at is not null)`)
  await askAfterUndo(tx, operation_id, undo.gates)
  const closed = await tx
    .update(gates)
    .set({ status: 'cancelled', updated_at: NOW })
    .where(and(eq(gates.operation_id, operation_id), inArray(gates.gate_id, undo.added_gates)))
    .returning({ gate_id: gates.gate_id, round: gates.round })
  await tx.execute(sql`
    insert into ${operation_graph_view} (operation_id, plan_revision, graph, plan_hash)
    select v.operation_id, o.plan_revision + 1, v.graph, v.plan_hash from ${operation_graph_view} v join ${operations} o using (operation_id)
    where v.operation_id = ${operation_id} and v.plan_revision = ${base_revision}`)
  await updateRows(tx, { operation_id }, operations, {
    plan_revision: sql`${operations.plan_revision} + 1`,
    ...(undo.max_parallel !== undefined && { max_parallel: undo.max_parallel }),
    ...(undo.risk_level !== undefined && { risk_level: undo.risk_level }),
    open_gates: waitingGates(operation_id),
  })
  await movePatch(tx, operation_id, patch_id, 'approved', { status: 'not_applicable', status_reason: why })
  return [
    { type: 'patch.not_applicable', patch_id, data: { why } },
    ...closed.map(({ gate_id, round }) => ({ type: 'gate.cancelled', gate_id, patch_id, data: { round } })),
    ...(await settleRestored(tx, operation_id, stood)),
  ]
}
