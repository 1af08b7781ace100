import type { PlannerInput, Relationship, ResourceType, Target } from '../../../apps/operations/graph/types.ts'
import { loadLibrary } from '../../../apps/operations/packs/library.ts'

/** A small world for the planner: hosts of two regions, as the catalog's projection would give them. */
export const library = loadLibrary()

const DESIRED = {
  type: 'object',
  properties: {
    hostname: { type: 'string' },
    release: { type: 'string' },
    traffic: { enum: ['in', 'out'], default: 'in' },
    serial_number: { type: 'string' },
    admin_password: { type: 'string' },
    booted_at: { type: 'string' },
  },
}
const type = (type_key: string, ancestors: string[]): ResourceType => ({
  type_key,
  ancestors,
  lifecycle: { terminal: ['retired'] },
  desired_state_schema: DESIRED,
  field_classes: { immutable: ['/serial_number'], read_only: ['/booted_at'], sensitive: ['/admin_password'] },
})
export const types: ResourceType[] = [
  type('fleet.host', ['infra.host', 'infra.managed', 'core.resource']),
  type('infra.host', ['infra.managed', 'core.resource']),
  type('infra.deployment', ['infra.managed', 'core.resource']),
]

export const host = (resource_id: string, more: Partial<Target> = {}): Target => ({
  resource_id,
  type_key: 'fleet.host',
  type_version: 1,
  name: resource_id,
  parent_id: 'eu1-web',
  version: 3,
  lifecycle_status: 'active',
  health_status: 'healthy',
  labels: { environment: 'demo' },
  annotations: {},
  desired_state: { hostname: resource_id, release: '2.3.9', traffic: 'in', serial_number: 'A1' },
  observed_state: { base_url: `http://127.0.0.1:7181/${resource_id}`, release: '2.3.9' },
  scope: { region_id: 'eu1', datacenter_id: 'eu1-a', layer_id: 'eu1-edge', segment_id: 'eu1-web' },
  ancestors: ['eu1-web', 'eu1-edge', 'eu1-a', 'eu1'],
  ...more,
})

export const hosts = (count: number, region = 'eu1'): Target[] =>
  Array.from({ length: count }, (_, i) =>
    host(`${region}-web-${String(i + 1).padStart(2, '0')}`, {
      scope: { region_id: region, datacenter_id: `${region}-a`, layer_id: null, segment_id: null },
      ancestors: [`${region}-a`, region],
    }),
  )

export const dependsOn = (from_id: string, to_id: string): Relationship => ({ type_key: 'depends_on', from_id, to_id })

export const release = (
  targets: Target[],
  patch: Record<string, unknown> = { release: '2.4.0' },
  more: Partial<PlannerInput['intent']> = {},
): PlannerInput =>
  inputOf(targets, {
    kind: 'change',
    change: { op: 'update', desired_state_patch: patch, parameters: { drain_s: 2 } },
    ...more,
  })

export const inputOf = (targets: Target[], intent: Partial<PlannerInput['intent']>): PlannerInput => ({
  intent: {
    intent_id: '018f0000-0000-7000-8000-000000000001',
    kind: 'change',
    labels: { environment: 'demo' },
    constraints: {},
    ...intent,
  },
  targets,
  relationships: [],
  relationship_types: [
    { type_key: 'depends_on', inverse_key: 'required_by' },
    { type_key: 'member_of', inverse_key: 'has_member' },
  ],
  types,
  library,
  durations: new Map(),
  limits: { nodes: 5000, edges: 20_000, graph_nodes: 5000 },
  at: '2026-01-01T00:00:00.000Z',
})
