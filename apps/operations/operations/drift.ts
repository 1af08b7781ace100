import { and, eq, inArray } from 'drizzle-orm'
import { equals, type Queryable, type Tx, updateRows } from '../../../db/client.ts'
import { type Asked, askAgain } from '../../../db/operations/gates/ask.ts'
import { listMovedTargets, listPatchedNodes, type MovedTarget } from '../../../db/operations/leases/drift.ts'
import type { DriftUndo } from '../../../db/operations/operations/undo.rows.ts'
import { getPack } from '../../../db/operations/packs.ts'
import { getIntent, getPlan } from '../../../db/operations/plans/rows.ts'
import { nodes, operations, type PlanDocument } from '../../../db/operations/tables/index.ts'
import { NOW } from '../../../db/rows.ts'
import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import type { Subject } from '../command/command.ts'
import type { PlanningDeps } from '../deps.ts'
import { coneOf } from '../graph/graph.ts'
import { specDigest } from '../graph/hashes.ts'
import type { Pack, TargetDiff } from '../graph/types.ts'
import { packOf } from '../packs/library.ts'
import { batchRootsOf } from '../planner/batch.ts'
import type { Made } from '../planner/plan.ts'
import { lookAhead } from '../plans/ahead.ts'
import { diffOf } from '../plans/difference.ts'
import { planIntent } from '../plans/make.ts'
import { loadTargets } from '../targets/resolve.ts'

/** The consequences of newer target versions for a running operation (operations.md 3.4). */
export type Drift = {
  /** The current versions of moved targets with nodes that have not begun. */
  pins: Record<string, number>
  /** Nodes that would act differently, or might; with their current specification if there is one. */
  drifted: { node_id: string; resource_id: string; spec: PlanNode | null }[]
  /** The plan's current changes to these targets. */
  diff: TargetDiff[]
}

type Running = Pick<Subject, 'operation_id' | 'intent_id' | 'plan_id' | 'pins' | 'resource_ids'>

/**
 * Checks targets that have moved since they were pinned: resolves the values of nodes that have not begun again. A
 * version that moves without a value is no drift; the operation's own writes never are. `only`: just these targets.
 */
export const driftOf = async (
  db: Queryable,
  deps: PlanningDeps,
  running: Running,
  only?: readonly string[],
): Promise<Drift> => {
  const all = await listMovedTargets(db, running.operation_id, running.pins, only)
  const moved = all.filter(({ node_ids }) => node_ids.length > 0)
  if (moved.length === 0) return { pins: {}, drifted: [], diff: [] }
  const [made, known, rows, patched] = await Promise.all([
    planAgain(db, deps, running, moved),
    diffOf(db, running),
    db
      .select({ node_id: nodes.node_id, spec: nodes.spec })
      .from(nodes)
      .where(
        and(
          eq(nodes.operation_id, running.operation_id),
          inArray(
            nodes.node_id,
            moved.flatMap(({ node_ids }) => node_ids),
          ),
        ),
      ),
    listPatchedNodes(db, running.operation_id),
  ])
  const specs = new Map(rows.map(({ node_id, spec }) => [node_id, spec]))
  const fresh = new Map((made?.document.nodes ?? []).map((node) => [node.node_id, node]))
  const diff = (made?.diff ?? []).filter(({ resource_id }) =>
    moved.some((target) => target.resource_id === resource_id),
  )
  const drifted = moved.flatMap(({ resource_id, node_ids }) => {
    const same = essenceOf(diff, resource_id) === essenceOf(known, resource_id)
    return node_ids.flatMap((node_id): Drift['drifted'] => {
      const spec = specs.get(node_id)
      // A value approved by a patch stays as approved.
      if (!spec || patched.has(node_id)) return []
      const again = fresh.get(node_id)
      if (!again) return [{ node_id, resource_id, spec: null }]
      const next = withValues(spec, again)
      if (specDigest(next) === specDigest(spec)) return same ? [] : [{ node_id, resource_id, spec: null }]
      return [{ node_id, resource_id, spec: next }]
    })
  })
  return { pins: Object.fromEntries(moved.map(({ resource_id, version }) => [resource_id, version])), drifted, diff }
}

/**
 * Replans now as the operation was planned: with the packs of its plan, whichever are loaded since, and only the moved
 * targets if their nodes do not depend on others. `undefined` if planning is refused.
 */
const planAgain = async (
  db: Queryable,
  deps: PlanningDeps,
  { intent_id, plan_id, resource_ids }: Running,
  moved: readonly MovedTarget[],
): Promise<Made | undefined> => {
  const [intent, plan] = await Promise.all([getIntent(db, intent_id), getPlan(db, plan_id)])
  if (!intent || !plan) return undefined
  const { catalog_pins: pins, nodes: planned } = plan.document
  const packs = (await Promise.all(plan.document.packs.map((one) => packFor(db, deps, one)))).flatMap(
    (one) => one ?? [],
  )
  const apart = intent.kind !== 'graph'
  const again = new Set(apart ? pluck(moved, 'resource_id') : resource_ids)
  const lists = packs.some(({ document }) => JSON.stringify(document).includes('"$each"'))
  const among = apart && {
    ...{ pins, batches: batchRootsOf(planned) },
    targets: lists ? await loadTargets(db, pluck(pins, 'resource_id')) : undefined,
  }
  return planIntent(db, { ...deps, library: { ...deps.library, packs, away: [] } }, intent, {
    exclude: intent.resource_ids.filter((id) => !again.has(id)),
    at: deps.clock.now().toISOString(),
    ...(among && { among }),
  }).catch((error: unknown) => {
    if (error instanceof AppError && error.category !== 'internal_error') return undefined
    throw error
  })
}

/** A pack of a plan, without its gates: a running operation has its own. */
const packFor = async (
  db: Queryable,
  { library }: PlanningDeps,
  { pack, version, digest: known }: PlanDocument['packs'][number],
): Promise<Pack | undefined> => {
  const loaded = library.packs.find((one) => one.pack === pack && one.version === version && one.digest === known)
  const stored = loaded ? undefined : await getPack(db, { pack, version })
  const found = loaded ?? (stored && packOf(stored.document))
  return found && { ...found, procedures: found.procedures.map((procedure) => ({ ...procedure, gates: [] })) }
}

const essenceOf = (diff: readonly TargetDiff[], id: string): string => {
  const found = diff.find(({ resource_id }) => resource_id === id)
  const fields = (found?.fields ?? []).filter(({ noise }) => !noise)
  return digest([found?.change ?? null, fields.map(({ path, before, after }) => ({ path, before, after }))])
}

/** The members of a node that hold values of its target. */
const VALUES = ['with', 'read', 'catalog', 'compensate', 'secrets'] as const
const withValues = (spec: PlanNode, from: PlanNode): PlanNode => {
  const next: Record<string, unknown> = { ...spec }
  for (const member of VALUES) {
    if (from[member] === undefined) delete next[member]
    else next[member] = from[member]
  }
  return next as PlanNode
}

/**
 * A person accepts the new values: nodes hold them from now on, and a gate that approved other values asks again.
 * `before`: the rows that this changes, for a withdrawal.
 */
export const takeDrift = async (
  deps: PlanningDeps,
  tx: Tx,
  subject: Subject,
  drift: Drift,
): Promise<Asked & { before: DriftUndo }> => {
  const { operation_id } = subject
  const changed = drift.drifted.map(({ node_id }) => node_id)
  const known = await diffOf(tx, subject)
  const resource_ids = drift.diff.map(({ resource_id }) => resource_id)
  const stays = ({ resource_id }: TargetDiff) => !resource_ids.includes(resource_id)
  const specs = await tx
    .select(pick(nodes, 'node_id', 'spec', 'spec_digest', 'gate_ids'))
    .from(nodes)
    .where(and(eq(nodes.operation_id, operation_id), inArray(nodes.node_id, changed)))
  await updateRows(tx, { operation_id }, operations, { diff_moved: [...known.filter(stays), ...drift.diff] })
  for (const { node_id, spec } of drift.drifted) if (spec) await setSpec(tx, operation_id, node_id, spec)
  const outlook = await lookAhead(deps, tx, subject, [])
  const guarded = new Map(
    outlook.gates.map(({ gate_id, guards }) => {
      const cone = coneOf(outlook.patched.nodes, guards)
      return [gate_id, changed.filter((node_id) => cone.has(node_id))]
    }),
  )
  const behind = (gate_id: string) => guarded.get(gate_id) ?? []
  const asked = await askAgain(tx, operation_id, outlook.rows.gates, outlook.gates, behind)
  const pins = Object.fromEntries(Object.keys(drift.pins).map((id) => [id, subject.pins[id]]))
  const diff = known.filter((entry) => !stays(entry))
  return { ...asked, before: { nodes: specs, gates: asked.undo, drift: { pins, resource_ids, diff } } }
}

const setSpec = async (tx: Tx, operation_id: string, node_id: string, spec: PlanNode): Promise<void> => {
  const own = equals(nodes, { operation_id, node_id })
  const [row] = await tx.select({ overrides: nodes.input_overrides }).from(nodes).where(own)
  const runs = row?.overrides ? { ...spec, with: mergePatch(spec.with, row.overrides) as PlanNode['with'] } : spec
  await tx
    .update(nodes)
    .set({ spec, spec_digest: specDigest(runs), updated_at: NOW })
    .where(own)
}
