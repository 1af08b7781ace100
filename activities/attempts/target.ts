import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { Context } from '@temporalio/activity'
import { TARGET_DRIFTED, type TargetRead } from '../../apps/shared/contracts/operations/graph.ts'
import { isObject, readPointer } from '../../apps/shared/data/pointer.ts'
import { resolveValue } from '../../apps/shared/expressions/values.ts'
import { readAim } from '../../db/operations/nodes/attempts.ts'
import type { Terms } from '../../db/operations/nodes/claim.ts'
import { CatalogAway } from '../catalog.client.ts'
import type { ActivityDeps } from '../deps.ts'
import type { ExecutorResult } from '../executors/types.ts'

export type AttemptInput = {
  operation_id: string
  node_id: string
  role: 'run' | 'undo'
  generation: number
  attempt: number
  slice: number
}

/** How long a claim or a result waits for Postgres; the workflow allows for both (launch.ts). */
const OUTAGE_MS = 20_000

/** Retries a statement during a short outage of Postgres; the heartbeat shows that the attempt is still at work. */
export const patiently = async <T>(write: () => Promise<T>): Promise<T> => {
  const end = Date.now() + OUTAGE_MS
  for (let wait = 100; ; wait = Math.min(wait * 2, 2000)) {
    try {
      return await write()
    } catch (error) {
      if (Date.now() + wait > end) throw error
      Context.current().heartbeat()
      await delay(wait)
    }
  }
}

/** How long an attempt waits for the catalog to report the planned version. Usually it takes a moment. */
const PATIENCE_MS = 3000
const LOOK_MS = 200
/** The node asks again after this long. */
const AGAIN_MS = 5000

export type Aimed = Pick<Terms, 'asked_at' | 'bar'>

/** Operations known to have no target; their attempts skip the query. */
const MOST_KNOWN = 10_000

/**
 * Returns why an attempt must not begin on its target: the catalog has moved on from the planned version, or does not
 * answer (operations.md 1.5, "target as planned"). Operations either pins the new version, if no value changed, or
 * pauses the operation. Until then the node waits.
 */
export const createAims = ({ pool, catalog }: Pick<ActivityDeps, 'pool' | 'catalog'>) => {
  const aimless = new Set<string>()
  return async (input: AttemptInput): Promise<Aimed> => {
    if (input.role !== 'run' || aimless.has(input.operation_id)) return {}
    for (const end = Date.now() + PATIENCE_MS; ; ) {
      const aim = await readAim(pool, input)
      if (aim === 'never') {
        if (aimless.size >= MOST_KNOWN) aimless.clear()
        aimless.add(input.operation_id)
      }
      if (typeof aim === 'string') return {}
      const version = await catalog.versionOf(aim.target_id).catch(unlessAway)
      if (version === aim.version) return { asked_at: aim.asked_at }
      if (version === 'away' || Date.now() >= end)
        return {
          bar: { reason: 'drifted', closure: { kind: 'catalog', id: aim.target_id, until: Date.now() + AGAIN_MS } },
        }
      Context.current().heartbeat()
      await delay(LOOK_MS)
    }
  }
}

const unlessAway = (error: unknown): 'away' => {
  if (error instanceof CatalogAway) return 'away'
  throw error
}

/** The look at a target before its first effect, with its values filled in (operations.md 4.1, `read`). */
export type Look = { executor: string; with: Record<string, unknown>; expect: Record<string, unknown> }

export const lookOf = ({ executor, ...read }: TargetRead, secrets: Record<string, string>): Look => {
  const of = (value: unknown) => {
    const known = resolveValue(value, { nodes: {}, secrets })
    return isObject(known) ? known : {}
  }
  return { executor, with: of(read.with), expect: of(read.expect) }
}

/**
 * Returns why an attempt must not act on its target: it could not be read, or it is not as planned. `undefined` if it
 * is as planned. After a repeat it is unknown whether the attempt itself made the difference.
 */
export const refuseTarget = (
  { expect }: Look,
  seen: ExecutorResult,
  repeated: boolean,
): Exclude<ExecutorResult, { status: 'succeeded' | 'pending' }> | undefined => {
  if (seen.status === 'failed') return seen
  if (seen.status !== 'succeeded')
    return { status: 'failed', class: 'unreachable', message: 'The target could not be read before the first effect.' }
  const differs = Object.entries(expect).flatMap(([place, planned]) => {
    const found = readPointer(seen.raw, place)
    return isDeepStrictEqual(found, planned)
      ? []
      : [`${place} is ${told(found)}, but the plan expects ${told(planned)}`]
  })
  if (differs.length === 0) return undefined
  const message = `The target differs from the plan: ${differs.join('; ')}.`
  const found = { class: TARGET_DRIFTED, message }
  return repeated ? { status: 'unknown', ...found } : { status: 'failed', ...found, hint: HINT }
}

const HINT = 'Bring the target or the catalog in line, retry this node, and resume. Or cancel, and plan again.'
const told = (value: unknown): string => (value === undefined ? 'missing' : JSON.stringify(value).slice(0, 100))

export const refOf = ({ operation_id, node_id, role, attempt }: AttemptInput) => ({
  operation_id,
  node_id,
  role,
  attempt,
})
