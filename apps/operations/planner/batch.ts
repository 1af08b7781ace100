import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { readPointer } from '../../shared/data/pointer.ts'
import { byText } from '../graph/graph.ts'
import type { Order } from '../graph/order.ts'
import type { Batch, BatchRoot, BatchRule, Lane, Target } from '../graph/types.ts'

/**
 * Splits the targets of a lane into batches: level by level of the order, group by group of `by`, sorted by name, the
 * canary of each group first. The batches run one after the other, each closed by a barrier.
 */
export const batchesOf = (lane: Lane, order: Order, prefix: string): Batch[] => {
  const rule = lane.batch
  if (!rule) return []
  const levels = Map.groupBy(lane.targets, (target) => order.level.get(target.resource_id) ?? 0)
  const by = groupBy(rule)
  const many = new Set(lane.targets.map(by)).size > 1
  return [...levels]
    .sort(([a], [b]) => a - b)
    .flatMap(([, targets], level) => {
      const groups = [...Map.groupBy(targets, by)].sort(([a], [b]) => byText(a, b))
      return groups.flatMap(([group, members], index) => {
        const parts = [
          ...(prefix === '' ? [] : [prefix]),
          ...(levels.size > 1 ? [`l${level + 1}`] : []),
          ...(many ? [idPart(group, index)] : []),
        ]
        const names = [...(levels.size > 1 ? [`level ${level + 1}`] : []), ...(many ? [group || 'others'] : [])]
        return cut(members, rule, parts, names)
      })
    })
}

/** What closes a batch is named after it. */
export const DONE = ' done'

/** Returns the batch of each target, from the nodes of a plan. */
export const batchRootsOf = (nodes: readonly PlanNode[]): Map<string, BatchRoot> => {
  const members = Map.groupBy(nodes, ({ group }) => group)
  const lanes = Map.groupBy(
    nodes.filter(({ kind, group }) => kind === 'barrier' && group !== undefined),
    ({ step }) => step,
  )
  return new Map(
    [...lanes.values()].flatMap((barriers) =>
      barriers.flatMap(({ group = '', name }, index) => {
        const ids = new Set(members.get(group)?.flatMap(({ target_id }) => target_id ?? []))
        const root = { group_id: group, name: name.slice(0, -DONE.length), index, size: ids.size }
        return [...ids].map((id) => [id, root] as const)
      }),
    ),
  )
}

const groupBy = (rule: BatchRule) => (target: Target) =>
  rule.by === undefined ? '' : textOf(readPointer(target, `/${rule.by}`))

/** The `by` of a lane that none of its targets has, so that there are no groups. */
export const absentBy = ({ batch, targets }: Lane): string | undefined =>
  batch?.by !== undefined && targets.every((target) => groupBy(batch)(target) === '') ? batch.by : undefined

const cut = (members: Target[], rule: BatchRule, parts: string[], names: string[]): Batch[] => {
  const sorted = members.toSorted((a, b) => byText(a.name, b.name) || byText(a.resource_id, b.resource_id))
  const rest = sorted.slice(rule.canary)
  const size = sizeOf(rule.size, sorted.length)
  const count = Math.ceil(rest.length / size)
  const batches: Batch[] = []
  const add = (targets: Target[], id: string, name: string, canary: boolean) =>
    batches.push({
      group_id: [...parts, id].join('.'),
      name: [...names, name].join(', '),
      target_ids: targets.map((target) => target.resource_id),
      canary,
    })
  if (rule.canary > 0) add(sorted.slice(0, rule.canary), 'canary', 'canary', true)
  for (let i = 0; i < count; i++)
    add(rest.slice(i * size, (i + 1) * size), `${i + 1}`, `batch ${i + 1} of ${count}`, false)
  return batches
}

const sizeOf = (size: number | string, total: number): number =>
  typeof size === 'number' ? size : Math.max(1, Math.ceil((total * Number.parseInt(size, 10)) / 100))

const textOf = (value: unknown): string => (value === null || value === undefined ? '' : String(value))

const idPart = (value: string, index: number): string =>
  /^[a-z0-9][a-z0-9_-]{0,23}$/.test(value) ? value : `g${index + 1}`
