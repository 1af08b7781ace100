import type { catalog_resources } from '../../../db/operations/tables/index.ts'
import type { Scope as Reach } from '../../shared/auth/scope.ts'
import type { Affected } from '../../shared/contracts/catalog/affected.ts'
import type {
  Compensation,
  FieldChange,
  GatePolicy,
  PlanNode,
  Retry,
  TargetRead,
  Timeouts,
} from '../../shared/contracts/operations/graph.ts'
import type { SchemaCheck } from '../../shared/data/json-schema.ts'
import type { CelProgram } from '../../shared/expressions/cel.ts'
import type { JudgedPlan, PlanFacts } from '../policies/plans.ts'
import type { ProgramRules } from './executors.ts'

/** The planner's input and output. Everything is plain data, so that a plan can be rebuilt anywhere. */
export type Resource = Omit<typeof catalog_resources.$inferSelect, 'change_seq' | 'updated_at'>
export type Scope = Record<'region_id' | 'datacenter_id' | 'layer_id' | 'segment_id', string | null>

/** A resource as expressions and references see it: with the places that contain it. */
export type Target = Resource & { scope: Scope; ancestors: string[] }

export type Relationship = { type_key: string; from_id: string; to_id: string }
export type RelationshipType = { type_key: string; inverse_key: string | null }
export type ResourceType = {
  type_key: string
  ancestors: string[]
  lifecycle: { terminal: string[]; transitions?: { from: string; to: string; by: string[] }[] }
  desired_state_schema: Record<string, unknown>
  field_classes: { immutable: string[]; read_only: string[]; sensitive: string[] }
  actions?: { action_key: string }[]
}

/** A step of a procedure: a node before it has a target and its place in a graph. */
export type Step = Omit<
  PlanNode,
  'node_id' | 'kind' | 'target_id' | 'depends_on' | 'read' | 'group' | 'step' | 'max_failures' | 'with'
> & { id: string; needs: string[]; include_if?: string; with: Record<string, unknown> }
export type Place = 'entry' | 'after_canary' | 'between_batches' | 'before_step'
export type BatchRule = { by?: string; canary: number; size: number | string; max_failures: number }

export type Procedure = {
  pack: string
  version: string
  key: string
  kind: 'change' | 'action' | 'runbook'
  title: string
  priority: number
  scope: 'target' | 'plan'
  match: { resource_type?: string; op?: string; paths?: string[]; action?: string }
  when?: CelProgram
  parameters: Record<string, unknown>
  /** Fills in defaults in the given value. */
  checkParameters: SchemaCheck
  lease: { mode: 'exclusive' | 'shared'; ancestors: 'shared' | 'none' }
  order?: { relationship_types: string[]; first: 'dependency' | 'dependent' }
  batch?: BatchRule
  risk_base: number
  gates: { policy: string; at: Place; step?: string }[]
  /** The first steps of a target do this just before each of them acts. */
  read?: TargetRead
  steps: Step[]
}
export type Pack = {
  pack: string
  version: string
  digest: string
  document: Record<string, unknown>
  procedures: Procedure[]
}
export type Policy = { policy: GatePolicy; question: string; applies?: CelProgram; place: { at: Place; step?: string } }
export type Window = {
  window_id: string
  applies: CelProgram
  timezone: string
  days: string[]
  from: string
  to: string
}
export type Freeze = {
  freeze_id: string
  title: string
  applies: CelProgram
  from: string
  to: string
  approvers: string[]
  /** Where the person who made it may freeze; without it, everywhere. */
  within?: Reach[]
  digest: string
}
/** Whether a freeze or a window covers a target. */
export type Covers = (entry: Pick<Freeze, 'applies' | 'within'>, target: Target) => boolean
/** The contents of this app's folders: procedures, gate policies, windows and freezes. */
export type Library = {
  packs: Pack[]
  policies: Map<string, Policy>
  windows: Window[]
  freezes: Freeze[]
  /** Why packages are missing for now. */
  away?: string[]
}

export type ChangeKind = 'create' | 'update' | 'replace' | 'delete' | 'no_change' | 'unknown'
/** Type and region are missing where a plan was made before they were kept. */
export type TargetDiff = {
  resource_id: string
  name: string
  type_key?: string
  region_id?: string | null
  change: ChangeKind
  fields: FieldChange[]
}

/** The parts of an intent that determine what its plan does. */
export type PlannedIntent = {
  intent_id: string
  requester_id?: string
  kind: 'change' | 'action' | 'runbook' | 'graph'
  labels: Record<string, string>
  constraints: Record<string, unknown>
  change?: {
    op: 'update' | 'create' | 'delete'
    desired_state_patch?: Record<string, unknown>
    parameters?: Record<string, unknown>
  }
  action?: { action_key: string; parameters?: Record<string, unknown> }
  runbook?: { pack: string; procedure: string; version?: string; parameters?: Record<string, unknown> }
  graph?: { nodes: GraphNode[]; gates?: GraphGate[] }
}
/** A node of a graph intent as its author wrote it. */
export type GraphNode = Partial<Omit<PlanNode, 'node_id' | 'kind' | 'timeouts' | 'retry' | 'compensate'>> & {
  node_id: string
  kind?: PlanNode['kind']
  timeouts?: Partial<Timeouts>
  retry?: Partial<Retry>
  compensate?: Partial<Compensation>
}
export type GraphGate = {
  gate_id: string
  policy: string | Record<string, unknown>
  question?: string
  guards: string[]
}

export type PlannerInput = {
  intent: PlannedIntent
  targets: Target[]
  /** If these are only some targets of an earlier plan: what its steps saw of all. */
  among?: Among
  /** The catalog's count of what depends on the targets; null if it was not asked or keeps no graph. */
  affected?: Affected | null
  /** Open edges near the targets: order and impact pass through other resources along them. */
  relationships: Relationship[]
  relationship_types: RelationshipType[]
  types: ResourceType[]
  library: Library
  /** p50 and p90 in seconds of past successes, by `PlanNode.step`. */
  durations: Map<string, { p50_s: number; p90_s: number }>
  limits: { nodes: number; edges: number; graph_nodes: number }
  /** Used only by freezes and windows. */
  at: string
  /** Asked beforehand, with turns for others in between; without it a plan asks in one go. */
  covers?: Covers
  /** The policies' verdict on a plan with these facts; without it no plan is judged. */
  judge?: (facts: PlanFacts) => JudgedPlan[]
  /** Which secrets the steps of a pool may resolve; without it none is refused here. */
  mayResolve?: (pool: string, reference: string) => boolean
  /** Which programs steps may run; without it none is refused here. */
  programs?: ProgramRules
  /** Which pools may have agents; without it none is refused here. */
  hasPool?: (pool: string) => boolean
}

/** `batches`: the batch of each target. `targets`: only if a step lists them. */
export type Among = {
  pins: readonly { resource_id: string }[]
  batches: ReadonlyMap<string, BatchRoot>
  targets?: readonly Target[] | undefined
}
/** A batch as the steps in it see it. */
export type BatchRoot = { group_id: string; name: string; index: number; size: number }
export type Batch = { group_id: string; name: string; target_ids: string[]; canary: boolean }
export type Values = Record<string, string | number>
/** `values`: the names in the message, for other languages. */
export type Warning = { code: string; message: string; values?: Values }
export type Group = { group_id: string; name: string; kind: 'canary' | 'batch' }

/** The procedure that serves some targets, with their order. */
export type Lane = {
  procedure: Procedure
  /** The procedure's rule, narrowed by the intent's constraints. */
  batch: BatchRule | undefined
  params: Record<string, unknown>
  targets: Target[]
  diffs: Map<string, TargetDiff>
}
