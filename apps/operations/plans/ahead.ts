import type { Queryable, Tx } from '../../../db/client.ts'
import { getGraph } from '../../../db/operations/history/timeline.ts'
import type { Revision } from '../../../db/operations/patches/rows.ts'
import { getPatch, type PatchRow, type RunningRows, readRunning } from '../../../db/operations/patches/rows.ts'
import { fillGate } from '../../../workflows/operation/rules/gates.ts'
import { UNTOUCHED } from '../../../workflows/operation/state/patch.ts'
import { patchSubject } from '../../shared/contracts/client/digest.ts'
import {
  type Actor,
  type GateAsked,
  type GatePolicy,
  type GateSubject,
  type PlanGate,
  type PlanGraph,
  type PlanNode,
  partiesOf,
  type RefusalCode,
} from '../../shared/contracts/operations/graph.ts'
import type { PatchChange } from '../../shared/contracts/operations/patches.ts'
import { digest } from '../../shared/data/digest.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { pick } from '../../shared/data/pick.ts'
import { type CodeOf, notFound } from '../../shared/errors.ts'
import type { Subject } from '../command/command.ts'
import type { PlanningDeps } from '../deps.ts'
import { byText, DEFAULT_ESTIMATE_S, drawingOf, inRankOrder, scheduleOf } from '../graph/graph.ts'
import { specDigest } from '../graph/hashes.ts'
import { gateSubject } from '../graph/subject.ts'
import type { PlannedIntent, Target } from '../graph/types.ts'
import { refuseCeiling } from '../planner/bind.ts'
import { type DiffGraph, diffGraph, resultHash } from '../planner/patch.diff.ts'
import type { Running } from '../planner/patch.edit.ts'
import { applyPatch, type Patched } from '../planner/patch.ts'
import type { RiskLevel } from '../planner/risk.ts'
import { onePerson } from '../policies/authority.ts'
import { refuseHard } from '../policies/plans.ts'
import { loadTargets } from '../targets/resolve.ts'
import { type Planned, plannedOf } from './difference.ts'
import { inTime, loadWorld } from './make.ts'

/** The result of a patch on the current graph. */
export type Outlook = {
  rows: RunningRows
  running: Running
  targets: Target[]
  patched: Patched
  result_hash: string
  diff_graph: DiffGraph
  /** Gates with the nodes that they would release. */
  gates: (PlanGate & { subject: GateSubject; digest: string })[]
  /** Gates that would ask again. */
  rearmed: string[]
}

/** Computes a patch on the rows: the same for a dry run, the proposal, each vote and the application. */
export const lookAhead = async (
  deps: PlanningDeps,
  tx: Queryable,
  subject: Subject,
  changes: readonly PatchChange[],
  { instead }: { /** Ignore this node's overrides. */ instead?: string } = {},
): Promise<Outlook> => {
  const [read, targets, planned] = await Promise.all([
    readRunning(tx, subject.operation_id),
    loadTargets(tx, subject.resource_ids),
    plannedOf(tx, subject),
  ])
  const rows = {
    ...read,
    nodes: read.nodes.map((row) => (row.node_id === instead ? { ...row, input_overrides: null } : row)),
  }
  const running = runningOf(rows, subject)
  const world = await loadWorld(tx, deps, targets, deps.clock.now().toISOString())
  const intent = { ...subject, kind: subject.kind as PlannedIntent['kind'] }
  const context = { ...world, intent, ...planned }
  const patched = inTime(() => applyPatch(running, changes, context))
  const overridden = withOverrides(patched.nodes, rows)
  const asked = askedBy(rows, planned)
  const gates = patched.gates.map((gate) => ({
    ...gate,
    ...gateSubject(subject.operation_id, gate, overridden, planned.diff, {
      asked,
      bound_outputs: boundOf(rows, gate.gate_id),
    }),
  }))
  const before = new Map(rows.gates.map((row) => [row.gate_id, row]))
  const rearmed = gates.flatMap(({ gate_id, digest: now }) => {
    const row = before.get(gate_id)
    const asked =
      row?.status === 'waiting' || ((row?.status === 'approved' || row?.status === 'bypassed') && !row.consumed_at)
    return row && asked && row.digest !== now ? [gate_id] : []
  })
  return {
    rows,
    running,
    targets,
    patched,
    gates,
    rearmed,
    result_hash: resultHash(patched),
    diff_graph: diffGraph(running, patched),
  }
}

const runningOf = (rows: RunningRows, { max_parallel, risk_level }: Subject): Running => ({
  nodes: rows.nodes.filter(({ removed }) => !removed).map(({ spec }) => spec),
  gates: rows.gates
    .filter(({ status, kind }) => status !== 'cancelled' && kind !== 'intervention')
    .map((gate) => pick(gate, 'gate_id', 'kind', 'question', 'policy', 'guards', 'status')),
  max_parallel,
  risk_level: risk_level as RiskLevel,
  begun: new Set(rows.nodes.filter((row) => !isUntouched(row)).map(({ node_id }) => node_id)),
  spent: new Set([
    ...rows.nodes.filter(({ removed }) => removed).map(({ node_id }) => node_id),
    ...rows.gates
      .filter(({ status, kind }) => status === 'cancelled' || kind === 'intervention')
      .map(({ gate_id }) => gate_id),
  ]),
})

/** Whether no attempt was ever made, and no other act has settled the node. */
export const isUntouched = ({ state, attempt, removed }: RunningRows['nodes'][number]): boolean =>
  attempt === 0 && !removed && UNTOUCHED.has(state)

/** Returns nodes as they would run: inputs that a person has replaced count for the gate's subject. */
const withOverrides = (all: readonly PlanNode[], rows: RunningRows): PlanNode[] => {
  const overrides = new Map(rows.nodes.map((row) => [row.node_id, row.input_overrides]))
  return all.map((node) => {
    const own = overrides.get(node.node_id)
    return own ? { ...node, with: mergePatch(node.with, own) } : node
  })
}

/** Gates of a running operation keep the form of their subject. */
const askedBy = (rows: RunningRows, { asked }: Planned): GateAsked | undefined =>
  rows.gates.some(({ kind, subject }) => kind !== 'intervention' && subject.v === 1) ? undefined : asked

const boundOf = (rows: RunningRows, gate_id: string) =>
  rows.gates.find((row) => row.gate_id === gate_id)?.subject.bound_outputs ?? []

/** Returns why these nodes cannot be touched now: another patch holds them, or they have begun or been settled. */
export const refuseTouched = ({ rows, patched }: Outlook, own?: string): RefusalCode | undefined => {
  const touched = new Set(patched.touched)
  const concerned = rows.nodes.filter(({ node_id }) => touched.has(node_id))
  const held = concerned.filter(({ hold_patch_id }) => hold_patch_id !== null && hold_patch_id !== own)
  const begun = concerned.filter((row) => !isUntouched(row))
  if (begun.length > 0)
    return notApplicable(
      'node_already_dispatched',
      `"${begun[0]?.node_id}" has started or ended; only nodes that have not started can change.`,
      { nodes: begun.slice(0, 100).map(({ node_id, state }) => ({ node_id, state })) },
    )
  if (held.length > 0)
    return notApplicable('patch_overlap', `"${held[0]?.node_id}" is held by another open patch.`, {
      patch_ids: [...new Set(held.map(({ hold_patch_id }) => hold_patch_id))],
    })
  return undefined
}

/** Applies the intent's ceiling and the current hard policies: they refuse in a patch what they refuse in a plan. */
export const refuseBound = (subject: Subject, { patched: { weight } }: Outlook): RefusalCode | undefined =>
  weight && (refuseCeiling(subject.constraints, weight.risk) ?? refuseHard(weight.judged))

export const notApplicable = (
  code: CodeOf<'patch_not_applicable'>,
  detail: string,
  extra: Record<string, unknown> = {},
): RefusalCode => ({ category: 'patch_not_applicable', code, detail, extra })

type BoundPatch = Pick<PatchRow, 'patch_id' | 'base_revision' | 'changes' | 'result_hash' | 'reason' | 'ticket'> & {
  proposer: Actor
}

/** Who proposes a patch and why, and the digest that a vote is bound to. */
export const boundPatch = (patch: BoundPatch) => {
  const asked = { proposer: pick(patch.proposer, 'kind', 'id', 'name'), ...pick(patch, 'reason', 'ticket') }
  return { asked, digest: digest(patchSubject({ ...patch, asked })) }
}

/** Each policy that the patch touches must be satisfied by these votes; without a policy, one person is enough. */
export const outcomeOfPatch = (
  required: readonly GatePolicy[],
  votes: readonly { user_id: string; decision: 'approve' | 'reject'; groups: readonly string[] }[],
): 'approved' | 'awaiting_approval' => {
  const approvals = votes.filter(({ decision }) => decision === 'approve')
  if (approvals.length === 0) return 'awaiting_approval'
  return required.every((policy) => fillGate(policy, approvals) !== undefined) ? 'approved' : 'awaiting_approval'
}

/** Groups whose vote helps; empty if anyone's does. */
export const patchGroups = (required: readonly GatePolicy[]): string[] =>
  required.length === 0 || required.some(({ groups }) => groups.length === 0)
    ? []
    : [...new Set(required.flatMap(({ groups }) => groups.map(({ group }) => group)))]

/** The policy for a patch that touches no gate: one person with the right to decide. */
const ONE_PERSON = onePerson('patch')

/** Returns gates opened by a patch's own votes: the voters are proved again before its new or changed nodes begin. */
const gatesOfPatch = ({ patch_id, required }: PatchRow, { nodes, touched, added }: Patched): PlanGate[] => {
  const concerned = new Set([...touched, ...added])
  const guards = nodes.flatMap(({ node_id, kind }) => (kind === 'task' && concerned.has(node_id) ? [node_id] : []))
  if (guards.length === 0) return []
  const asking = required.filter(({ check }) => check === undefined)
  return (asking.length > 0 ? asking : [ONE_PERSON]).map((policy, n) => ({
    gate_id: `patch-${patch_id}${n === 0 ? '' : `-${n}`}`,
    kind: 'approval',
    question: 'Start the steps that the patch adds or changes?',
    policy,
    guards: guards.sort(byText),
  }))
}

/** Returns everything that the next revision writes. */
export const revisionOf = async (tx: Tx, subject: Subject, patch: PatchRow, outlook: Outlook): Promise<Revision> => {
  const { patched, rows, result_hash } = outlook
  const { operation_id, plan_revision, max_parallel } = subject
  const [drawn, planned] = [await getGraph(tx, operation_id, plan_revision), await plannedOf(tx, subject)]
  const asked = askedBy(rows, planned)
  const concerned = new Set([...patched.touched, ...patched.added])
  const own = gatesOfPatch(patch, patched)
  const overridden = withOverrides(patched.nodes, rows)
  const gates = [
    ...outlook.gates,
    ...own.map((gate) => ({ ...gate, ...gateSubject(operation_id, gate, overridden, planned.diff, { asked }) })),
  ]
  return {
    operation_id,
    patch_id: patch.patch_id,
    base_revision: plan_revision,
    running: rows,
    nodes: patched.nodes
      .filter(({ node_id }) => concerned.has(node_id))
      .map((node) => ({ ...node, spec_digest: specDigest(node) })),
    ...pick(patched, 'removed', 'removed_gates'),
    gates,
    opened: own.map(({ gate_id }) => gate_id),
    max_parallel: { before: max_parallel, after: patched.max_parallel },
    risk_level: { before: subject.risk_level, after: patched.weight?.risk.level ?? subject.risk_level },
    graph: drawAgain({ ...patched, gates: [...patched.gates, ...own] }, drawn?.drawing.graph),
    result_hash,
    proposers: partiesOf(patch.proposer),
  }
}

/** Returns the drawing of the new graph; existing nodes keep their estimates. */
const drawAgain = (patched: Patched, before: PlanGraph | undefined): PlanGraph => {
  const known = new Map((before?.nodes ?? []).map((node) => [node.node_id, node.estimate_s]))
  const timing = (node: PlanNode) => {
    const s = known.get(node.node_id) ?? node.estimate_s ?? (node.kind === 'task' ? DEFAULT_ESTIMATE_S : 0)
    return { p50_s: s, p90_s: s }
  }
  const nodes = inRankOrder(patched.nodes)
  const { critical_path } = scheduleOf(nodes, timing)
  const groups = (before?.groups ?? []) as Parameters<typeof drawingOf>[2]
  return drawingOf(nodes, patched.gates, groups, critical_path, timing)
}

export const requirePatch = async (db: Queryable, operation_id: string, patch_id: string): Promise<PatchRow> => {
  const patch = await getPatch(db, operation_id, patch_id)
  if (!patch) throw notFound('patch', patch_id)
  return patch
}
