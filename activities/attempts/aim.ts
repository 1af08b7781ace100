import { setTimeout as delay } from 'node:timers/promises'
import { Context } from '@temporalio/activity'
import { type Aim, readAim } from '../../db/operations/nodes/aim.ts'
import type { Refusal } from '../../workflows/operation/state/events.ts'
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

/** So long an attempt waits here until what the catalog says has been looked at; most of that takes a moment. */
const PATIENCE_MS = 3000
const LOOK_MS = 200
/** After so long the node asks again. */
const AGAIN_MS = 5000

/** `asked_at`: when the catalog was asked; absent where no version counts. */
export type Aimed = { refusal: Refusal } | { asked_at?: string }

/** Operations that are known to have no target: their attempts are not asked about. */
const MOST_KNOWN = 10_000

/**
 * Why an attempt may not begin on its target: the catalog has moved on from the version that was planned, or does not
 * answer (operations.md 1.5, "target as planned"). A version that moved without a value is pinned anew by operations,
 * another pauses the operation; until one of both has happened the node waits.
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
      if (version === 'away' || Date.now() >= end) return { refusal: drifted(aim, input) }
      Context.current().heartbeat()
      await delay(LOOK_MS)
    }
  }
}

const drifted = ({ target_id, seq, repeated }: Aim, { generation }: AttemptInput): Refusal => ({
  reason: 'drifted',
  repeated,
  seq,
  generation,
  gates: [],
  closure: { kind: 'catalog', id: target_id, until: Date.now() + AGAIN_MS },
})

const unlessAway = (error: unknown): 'away' => {
  if (error instanceof CatalogAway) return 'away'
  throw error
}
