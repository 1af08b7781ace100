import type { Brief, BriefTarget } from '../../../db/operations/gates/brief.ts'
import type { GateRow } from '../../../db/operations/gates/rows.ts'
import { COMPARED_MAX } from '../../shared/contracts/catalog/health.ts'
import type { GateBrief } from '../../shared/contracts/operations/gates.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { type CatalogClient, CatalogUnavailable } from '../catalog/client.ts'
import type { Uses } from '../deps.ts'
import { changes } from '../planner/risk.ts'
import { seenResources, type Viewer } from '../policies/authority.ts'

const NAMED = 3
const WORST = ['unhealthy', 'degraded', 'unknown', 'maintenance', 'healthy']
const badness = ({ health }: BriefTarget) => WORST.indexOf(health)

/**
 * Returns what a voter weighs besides the subject, without names that this viewer may not see. It asks the catalog how
 * the metrics of the canary compare; those of a decided gate as they were then, so that the record keeps what was seen.
 */
export const briefFor = async (
  { db, trust }: Uses<'db' | 'trust'>,
  viewer: Viewer,
  { status, decided_at }: Pick<GateRow['gate'], 'status' | 'decided_at'>,
  brief: Brief,
): Promise<GateBrief> => {
  const all = brief.targets.map(({ resource_id }) => resource_id)
  const seen = await seenResources(db, viewer, all)
  const visible = brief.targets.filter(({ resource_id }) => seen.has(resource_id))
  const aimed = visible.filter(({ ended_at }) => ended_at === null)
  const canary = visible.filter(({ ended_at }) => ended_at !== null)
  const asks = canary.length > 0 && (status === 'waiting' || decided_at !== null)
  const metrics = asks ? await compared(trust.catalog, canary, aimed, decided_at) : undefined
  const lasting = brief.lasting.filter((node) => changes({ ...node, kind: 'task' }))
  return {
    asked: pick(brief, 'requester', 'title', 'reason', 'ticket', 'plan_id', 'plan_hash'),
    names: Object.fromEntries(aimed.flatMap(({ resource_id: id, name }) => (id === name ? [] : [[id, name]]))),
    types: tally(aimed.map(({ type_key }) => type_key ?? '')).map(([type_key, count]) => ({ type_key, count })),
    regions: [...new Set(aimed.flatMap(({ region_id }) => region_id ?? []))],
    batches: tally(aimed.flatMap(({ group_id }) => group_id ?? [])).map(([, count]) => count),
    now: { ...healthOf(aimed), hidden: all.length - visible.length },
    canary:
      canary.length === 0
        ? null
        : {
            ...healthOf(canary),
            named: canary.slice(0, NAMED).map(named),
            ended_at: endOf(canary),
            ...(metrics !== undefined && { metrics }),
            retries: canary.reduce((sum, { retries }) => sum + retries, 0),
          },
    risk: brief.risk as GateBrief['risk'],
    estimates: pick(brief.estimates as GateBrief['estimates'], 'p50_s', 'p90_s'),
    undo: {
      possible: brief.compensable > 0,
      lasting: lasting.slice(0, NAMED).map((node) => pick(node, 'node_id', 'name')),
      lasting_count: lasting.length,
    },
    order: brief.order,
    void_votes: brief.void_votes,
  }
}

const endOf = (canary: BriefTarget[]): string =>
  canary
    .map(({ ended_at }) => ended_at ?? '')
    .sort()
    .at(-1) ?? ''

/** The metrics of the canary against the rest; null if the catalog does not answer: the gate can still be decided. */
const compared = (catalog: CatalogClient, canary: BriefTarget[], rest: BriefTarget[], until: string | null) => {
  const ids = (targets: BriefTarget[]) => pluck(targets, 'resource_id').slice(0, COMPARED_MAX)
  const ended_at = endOf(canary)
  const [started_at = ended_at] = canary.flatMap((target) => target.started_at ?? []).sort()
  const asked = { resource_ids: ids(canary), rest_ids: ids(rest), started_at, ended_at, ...(until && { until }) }
  return catalog.compareHealth(asked).catch((error: unknown) => {
    if (error instanceof CatalogUnavailable) return null
    throw error
  })
}

const named = (target: BriefTarget) => pick(target, 'resource_id', 'name', 'health')

const healthOf = (targets: BriefTarget[]) => ({
  count: targets.length,
  health: tally(targets.map(({ health }) => health)).map(([status, count]) => ({ status, count })),
  worst: targets
    .filter(({ health }) => health !== 'healthy')
    .sort((a, b) => badness(a) - badness(b))
    .slice(0, NAMED)
    .map(named),
})

/** Counts each value, in order of first occurrence. */
const tally = <V extends string>(values: V[]): [V, number][] => {
  const counts = new Map<V, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts]
}
