import { setTimeout as delay } from 'node:timers/promises'
import { Context } from '@temporalio/activity'
import { readAim } from '../../db/operations/nodes/aim.ts'
import type { Terms } from '../../db/operations/nodes/claim.ts'
import { CatalogAway } from '../catalog.client.ts'
import type { ActivityDeps } from '../deps.ts'

export type AttemptInput = {
  operation_id: string
  node_id: string
  role: 'run' | 'undo'
  generation: number
  attempt: number
  slice: number
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
