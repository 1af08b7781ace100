import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Person } from '../../../apps/platform/demo/client.ts'
import { scratchFolder } from '../../support/servers.ts'
import { type Bench, preview, secondsOf, startPlan } from './runs.ts'

/** Five steps that do nothing, one after another, for each target: the makeup of a large plan. */
export const STEPS = ['look', 'drain', 'change', 'verify', 'undrain']
const PACK = {
  format: 'signalbox/pack@1',
  pack: 'bench',
  version: '1.0.0',
  title: 'Work that is none',
  owners: ['netops'],
  procedures: [
    {
      key: 'touch',
      kind: 'action',
      title: 'Touch a host',
      match: { resource_type: 'fleet.host', action: 'touch' },
      parameters: { type: 'object', additionalProperties: false },
      lease: { mode: 'exclusive', ancestors: 'shared' },
      risk: { base: 5 },
      defaults: { executor: 'noop', idempotent: true, with: { delay_ms: 0 } },
      steps: STEPS.map((id, at) => ({ id, ...(at > 0 && { needs: [STEPS[at - 1]] }) })),
    },
  ],
}

/** A folder with the benchmark's pack (YAML reads JSON). */
export const packFolder = (): string => {
  const folder = scratchFolder()
  writeFileSync(join(folder, 'bench.yaml'), JSON.stringify(PACK))
  return folder
}

const AT_ONCE = 8
/** A host is in a segment. */
const PLACES = [
  { resource_id: 'bench', type_key: 'topology.region', desired_state: { code: 'bench' } },
  { resource_id: 'bench-a', type_key: 'topology.datacenter', parent_id: 'bench' },
  {
    resource_id: 'bench-edge',
    type_key: 'topology.layer',
    parent_id: 'bench-a',
    desired_state: { layer_kind: 'edge' },
  },
  { resource_id: 'bench-web', type_key: 'topology.segment', parent_id: 'bench-edge' },
]

/** Hosts that exist only in the catalog; no one calls them. */
export const registerHosts = async (admin: Person, count: number): Promise<void> => {
  const record = (resource: { resource_id: string } & Record<string, unknown>) =>
    admin.post('/v1/resources?mode=record_only', { name: resource.resource_id, ...resource }, resource.resource_id)
  for (const place of PLACES) await record(place)
  const waiting = Array.from({ length: count }, (_, n) => `bench-host-${n}`)
  const register = async () => {
    for (let resource_id = waiting.shift(); resource_id !== undefined; resource_id = waiting.shift()) {
      const desired_state = { hostname: resource_id, release: '1.0.0', traffic: 'in' }
      const host = { resource_id, type_key: 'fleet.host', lifecycle_status: 'active', parent_id: 'bench-web' }
      await record({ ...host, desired_state })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, register))
}

/** Runs a reviewed action on that many hosts, five nodes each, to its end. */
export const touchHosts = async (bench: Bench, count: number): Promise<void> => {
  const selector = { type_key: 'fleet.host', when: "target.name.startsWith('bench-host-')", limit: count }
  const constraints = { max_parallel: 50 }
  const plan = await preview(bench, {
    kind: 'action',
    title: `touch ${count}`,
    reason: 'benchmark',
    action: { action_key: 'touch' },
    targets: [{ selector }],
    constraints,
  })
  await secondsOf(bench, await startPlan(bench, plan))
}
