import { AppError } from '../../shared/errors.ts'
import type { SessionDeps } from '../deps.ts'
import { endSession } from '../sessions/end.ts'
import { indexOf } from '../store/flows.ts'
import { verifyLogout } from './foreign.ts'
import { findProvider } from './start.ts'

/** Longer than a logout token stays valid. */
const REMEMBERED_S = 600

/** While the sessions end. If this process dies then, the token that comes again counts after this time. */
const CLAIMED_S = 30

type Named = Omit<Awaited<ReturnType<typeof verifyLogout>>, 'jti'>

/** The sessions of the provider's session, or all of the person; without its `sid` here, those that have none. */
const endedBy = async ({ flows, store }: SessionDeps, provider_id: string, { sid, sub, iat }: Named) => {
  const own = sid === undefined ? [] : await flows.sessionsOf(indexOf(provider_id, 'sid', sid), iat)
  if (own.length > 0 || sub === undefined) return own
  const all = await flows.sessionsOf(indexOf(provider_id, 'sub', sub), iat)
  if (sid === undefined) return all
  const records = await Promise.all(all.map(({ user_id, session_id }) => store.get(user_id, session_id)))
  const named = (index: string) => index.startsWith(`${provider_id}:sid:`)
  return all.filter((_, at) => !records[at]?.indexes?.some(named))
}

/** The provider reports that its session, or all of a person's, ended: our sessions from it end as by a logout. */
export const endByProvider = async (
  deps: SessionDeps,
  { provider_id, logout_token, request_id }: { provider_id: string; logout_token: string; request_id: string },
): Promise<void> => {
  const actor = `provider:${provider_id}`
  const audit = (outcome: 'done' | 'denied', reason?: string, details = {}) =>
    deps.audit({ action: 'provider_logout', outcome, ...(reason && { reason }), actor, request_id, details })
  try {
    const provider = findProvider(deps, provider_id)
    const { jti, ...named } = await verifyLogout(await deps.connections.get(provider), provider, logout_token)
    const name = `${provider_id} ${jti}`
    if (!(await deps.flows.once(name, CLAIMED_S))) throw replayed()
    const by = { actor_type: 'system', actor_id: actor, request_id } as const
    let ended = 0
    try {
      for (const session of await endedBy(deps, provider_id, named))
        if (await endSession(deps, session, 'logout', by)) ended += 1
    } catch (error) {
      // The provider will send the same token again.
      await deps.flows.forget(name).catch(() => {})
      throw error
    }
    await deps.flows.remember(name, REMEMBERED_S)
    await audit('done', undefined, { ended })
  } catch (error) {
    if (error instanceof AppError) await audit('denied', error.code)
    throw error
  }
}

const replayed = () => new AppError('validation_error', 'logout_token_replayed', 'This logout token was used before.')
