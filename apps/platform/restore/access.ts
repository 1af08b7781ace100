import { shutOutAgain } from '../../identity/users/restored.ts'
import type { LostEvent } from '../../relay/events/lost.ts'
import { loadTokenConfig } from '../../token/config.ts'
import { killKey } from '../../token/keys.service.ts'
import { keySettingsOf } from '../../token/wire.ts'
import { operator, settingOf, withDb } from '../ops/access.ts'
import { auditKeysOf } from '../ops/verify-audit.ts'

/**
 * People who were shut out in the lost future stay out, and a key that was killed there is killed again. No event says
 * which rights were granted or revoked, so those people are listed for review.
 */
export const closeAccessAgain = async (lost: readonly LostEvent[]): Promise<void> => {
  const last = new Map<string, 'DISABLED' | 'DELETED' | 'ACTIVE'>()
  for (const { type, user_id, to } of lost)
    if (type === 'auth.user.status_changed.v1') last.set(String(user_id), to as 'DISABLED' | 'DELETED' | 'ACTIVE')
  settingOf('identity', 'DATABASE__URL')
  await withDb('identity', async (db) => {
    for (const [user_id, to] of last) {
      if (to === 'ACTIVE') continue
      const became = await shutOutAgain(db, auditKeysOf('identity')[0] as Buffer, user_id, to, operator())
      console.log(
        became === 'done' ? `user ${user_id}: ${to} again` : `user ${user_id}: ${to} in the lost future; ${became}`,
      )
    }
  })
  const changed = lost.flatMap(({ type, user_ids }) =>
    type === 'auth.user.roles_changed.v1' && Array.isArray(user_ids) ? user_ids : [],
  )
  for (const user_id of new Set(changed))
    console.log(`user ${user_id}: rights were changed in the lost future; review them`)
  const kids = lost.flatMap(({ type, kid }) => (type === 'auth.key.revoked.v1' ? [String(kid)] : []))
  if (kids.length === 0) return
  settingOf('token', 'DATABASE__URL')
  await withDb('token', async (db) => {
    for (const kid of kids) {
      const outcome = await killKey(keySettingsOf(loadTokenConfig(), db), kid)
      console.log(`key ${kid}: ${typeof outcome === 'string' ? outcome.replace('_', ' ') : 'unknown'}`)
    }
  })
}
