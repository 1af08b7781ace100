import { revokeAgain } from '../../identity/machines/restored.ts'
import { ENDED_CREDENTIAL } from '../../identity/mutations.ts'
import { shutOutAgain } from '../../identity/users/restored.ts'
import type { LostEvent } from '../../relay/events/lost.ts'
import { loadTokenConfig } from '../../token/config.ts'
import { killKey } from '../../token/keys.service.ts'
import { keySettingsOf } from '../../token/wire.ts'
import { operator, settingOf, withDb } from '../ops/access.ts'
import { auditKeysOf } from '../ops/verify-audit.ts'

const ENDED = new Set(['auth.user.recovery_started.v1', 'auth.user.identity_unlinked.v1'])

/**
 * People who were shut out in the lost future stay out, and a key that was revoked or killed there ends again. No event
 * says which rights were granted or revoked, or which ways to sign in were ended, so those people are listed for review.
 */
export const closeAccessAgain = async (lost: readonly LostEvent[]): Promise<void> => {
  const last = new Map<string, 'DISABLED' | 'DELETED' | 'ACTIVE'>()
  for (const { type, user_id, to } of lost)
    if (type === 'auth.user.status_changed.v1') last.set(String(user_id), to as 'DISABLED' | 'DELETED' | 'ACTIVE')
  // The request that ends a machine's last owner announces its key as ended, too; with a new owner the key works again.
  const leaving = new Set(
    lost.flatMap(({ type, request_id }) => (type === 'auth.user.status_changed.v1' && request_id ? [request_id] : [])),
  )
  settingOf('identity', 'DATABASE__URL')
  await withDb('identity', async (db) => {
    const key = auditKeysOf('identity')[0] as Buffer
    for (const [user_id, to] of last) {
      if (to === 'ACTIVE') continue
      const became = await shutOutAgain(db, key, user_id, to, operator())
      console.log(
        became === 'done' ? `user ${user_id}: ${to} again` : `user ${user_id}: ${to} in the lost future; ${became}`,
      )
    }
    for (const { type, ...of } of lost) {
      if (type !== ENDED_CREDENTIAL) continue
      const [user_id, credential_id] = [String(of.user_id), String(of.credential_id)]
      if (leaving.has(of.request_id ?? '')) {
        console.log(`credential ${credential_id} of ${user_id}: its last owner left; review it`)
        continue
      }
      const became = await revokeAgain(db, key, { user_id, credential_id }, operator())
      console.log(`credential ${credential_id} of ${user_id}: ${became === 'done' ? 'revoked again' : became}`)
    }
  })
  for (const user_id of new Set(lost.flatMap((one) => (ENDED.has(one.type) ? [String(one.user_id)] : []))))
    console.log(`user ${user_id}: ways to sign in were ended in the lost future; unlink again or recover the account`)
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
