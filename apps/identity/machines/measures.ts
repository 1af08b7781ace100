import { sql } from 'drizzle-orm'
import { type Tx, updateRows } from '../../../db/client.ts'
import { liveOf, lockCredential, ROTATED } from '../../../db/identity/machines.ts'
import { type MachineCredentialRow, machine_credentials } from '../../../db/identity/tables.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import type { By, Measure } from '../control/changes.ts'
import { announce, ENDED_CREDENTIAL, rolesChanged } from '../mutations.ts'
import { refuseDeleted, throwIf } from '../rules.ts'
import { lockFound } from '../users/change.ts'
import { DAY_MS, isUnused, noteShown, noticesDue } from './ending.ts'

const isoOf = (text: string | null) => (text === null ? null : new Date(text).toISOString())

export const credentialView = (row: MachineCredentialRow) => ({
  ...pick(row, 'id', 'kind', 'name', 'permissions', 'scope', 'networks', 'jwk', 'trust'),
  created_at: new Date(row.created_at).toISOString(),
  expires_at: new Date(row.expires_at).toISOString(),
  revoked_at: isoOf(row.revoked_at),
  last_used_at: isoOf(row.last_used_at),
  last_address: row.last_address,
  unused: isUnused(row, new Date()),
})

/** For the audit log: which rights it carries, and how long. */
export const detailsOf = (row: MachineCredentialRow) =>
  pick(credentialView(row), 'id', 'kind', 'name', 'expires_at', 'scope', 'permissions', 'networks')

/** How many credentials of a kind may be valid at once: rotation needs two. */
const MOST = { key: 10, jwk: 4, trust: 10 } as const

export const lockMachine = async (tx: Tx, id: string) => {
  const user = await lockFound(tx, id)
  if (user.kind !== 'machine') throw notFound('machine', id, 'not_found')
  return user
}

/** A new credential: its holder acts as the machine, so it takes two administrators, whatever the machine's roles. */
export const credentialMeasure: Measure<'machine.credential'> = async ({ deps, tx, req }, wanted) => {
  const machine = await lockMachine(tx, wanted.machine_id)
  throwIf(refuseDeleted(machine))
  const { replaces, credential_id, expires_in_days = 0, expires_at: fixed, ...row } = wanted
  const old = replaces && (await lockCredential(tx, machine.id, replaces.credential_id))
  const works = await liveOf(tx, machine.id, row.kind)
  // Until the overlap ends, another rotation may replace a successor whose answer was lost.
  const replaced = old?.told === ROTATED && works.every(({ id }) => id !== old.id)
  if (replaces && (!old || old.revoked_at !== null || replaced))
    throw notFound('credential', replaces.credential_id, 'not_found')
  if (works.length >= MOST[row.kind])
    throw new AppError(
      'version_conflict',
      'too_many_credentials',
      `A machine can have at most ${MOST[row.kind]} credentials of this kind.`,
    )
  // An assertion names its key only by the kid, so a duplicate would leave the choice to the order of rows.
  if (row.jwk && works.some(({ jwk }) => jwk?.kid === row.jwk?.kid))
    throw new AppError(
      'version_conflict',
      'kid_taken',
      `Another key of this machine already has the kid ${row.jwk.kid}.`,
    )
  return {
    sensitive: true,
    accounts: [machine.id],
    renews: true,
    apply: async ({ requested_by, confirmed_by }: By) => {
      const expires_at = fixed ?? new Date(deps.clock.now().getTime() + expires_in_days * DAY_MS).toISOString()
      const [made] = await tx
        .insert(machine_credentials)
        .values({
          id: credential_id,
          ...row,
          expires_at,
          told: noticesDue(expires_at, new Date()),
          created_by: requested_by,
          confirmed_by,
        })
        .returning()
      if (!made) throw new Error('a credential was not written')
      if (old && replaces) {
        const { overlap_s = 86_400 } = replaces
        const until = sql`clock_timestamp() + make_interval(secs => ${overlap_s})`
        await updateRows(tx, { id: old.id }, machine_credentials, {
          expires_at: sql`least(${machine_credentials.expires_at}, ${until})`,
          told: ROTATED,
        })
        const ended = { user_id: machine.id, credential_id: old.id }
        if (overlap_s === 0) await announce(tx, req, ENDED_CREDENTIAL, ended)
      }
      await noteShown(tx, machine.id, new Date())
      // The people behind the machine have changed.
      await rolesChanged(tx, req, [machine.id])
      const after = credentialView(made)
      return {
        status: 201,
        body: { credential: after },
        action: old ? 'machine.credential_rotated' : 'machine.credential_created',
        object: `user:${machine.id}`,
        after,
        details: detailsOf(made),
      }
    },
  }
}
