import { uuidv7 } from '../../shared/ids.ts'
import type { Uses } from '../deps.ts'
import { type EndDeps, endSession } from '../sessions/end.ts'
import { providerIn } from '../store/flows.ts'

/**
 * Ends the sessions from providers that are no longer in the file, or switched off there: nobody would report that a
 * person has left. A process with an older file may open one meanwhile, and ends it when it reads the file. It would
 * also end those of a provider that was added, so while the file is unusable it ends none.
 */
export const endRemoved = async (deps: EndDeps & Uses<'flows' | 'providers'>): Promise<void> => {
  if (deps.providers.fault() !== null) return
  let failed: { error: unknown } | undefined
  for (let cursor = '0'; ; ) {
    const { next, indexes } = await deps.flows.indexesFrom(cursor)
    for (const index of indexes) {
      const id = providerIn(index)
      if (deps.providers.get(id)) continue
      const by = { actor_type: 'system', actor_id: `provider:${id}`, request_id: uuidv7() } as const
      for (const session of await deps.flows.sessionsIn(index)) {
        // A session ends before its replicas confirm it: while they are away, the others must not wait for the next pass.
        await endSession(deps, session, 'admin', by).catch((error: unknown) => {
          failed = { error }
        })
      }
    }
    if (next === '0') break
    cursor = next
  }
  if (failed) throw failed.error
}
