import type { FastifyRequest } from 'fastify'
import { getUser } from '../../../db/identity/queries.ts'
import type { ChangeDeps, Uses } from '../deps.ts'
import { actorOf, changeOnce } from '../mutations.ts'
import { refuseHalf, refuseOthersChange, throwIf } from '../rules.ts'
import { findChange } from './changes.ts'
import { isNewest, linkOf } from './links.ts'

/**
 * POST adm/changes/{change_id}/half: the requester's or the confirmer's half of the enrolment link that a confirmed
 * change creates. It is the same each time until another link of the account replaces it, and is never stored.
 */
export const halfOf = async (deps: ChangeDeps, req: FastifyRequest, change_id: string) => {
  const stored = await changeOnce(deps, req, { arming: true }, async (tx) => {
    const row = await findChange(tx, change_id)
    const part = row.requested_by === actorOf(req) ? 'first' : row.decided_by === actorOf(req) ? 'second' : undefined
    throwIf(refuseOthersChange(part !== undefined))
    const user = row.user_id === null ? undefined : await getUser(tx, row.user_id)
    const open = row.state === 'confirmed' && user?.status === 'ACTIVE' && isNewest(user, row.id)
    throwIf(refuseHalf(open, row.state === 'pending'))
    const body = { id: row.id, user_id: row.user_id ?? '', part: part ?? 'first' }
    return { status: 200, body, action: 'change.half_shown', object: `change:${row.id}`, reason: body.part }
  })
  const { id, user_id, part } = JSON.parse(stored.body.toString('utf8')) as {
    id: string
    user_id: string
    part: 'first' | 'second'
  }
  return {
    replayed: stored.replayed,
    body: { half: { part, ...(await partOfLink(deps, { id, user_id, part }, String(req.id))) } },
  }
}

/** One half of the link of a confirmed change, until a newer link of the account replaces it. */
export const partOfLink = (
  deps: Uses<'config' | 'credential' | 'db'>,
  { id, user_id, part }: { id: string; user_id: string; part: 'first' | 'second' },
  request_id = '',
) => linkOf(deps, { userId: user_id, changeId: id, half: part === 'first' ? 1 : 2 }, request_id)
