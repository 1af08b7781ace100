import type { Tx } from '../../../db/client.ts'
import { grants, type UserRow, users } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { By } from '../control/changes.ts'
import { handedOut } from '../control/links.ts'
import { refuseGrant, refuseNewName, refuseRepeatedGrant, refuseRolesOf, throwIf } from '../rules.ts'

export type NewUser = {
  username: string
  grants?: { role: string; scope?: Record<string, string>; expires_at?: string }[]
}

export const usernameTaken = (username: string) =>
  new AppError('version_conflict', 'username_taken', `The name "${username}" is taken.`, {
    hint: 'Choose another name; names of deleted users are never used again.',
  })

/** The name in its stored form. Throws if the name or a grant is not acceptable. */
export const refuseNewUser = ({ username, grants: wanted = [] }: NewUser, now: Date): string => {
  for (const [index, grant] of wanted.entries()) throwIf(refuseGrant(grant, now, `/grants/${index}`))
  throwIf(refuseRepeatedGrant(wanted))
  const name = username.normalize('NFKC')
  throwIf(refuseNewName(name))
  const roles = wanted.map(({ role }) => role)
  throwIf(refuseRolesOf([{ username: name, kind: 'person' }], roles))
  return name
}

/** Creates a user with its grants. The folded form of the name must be free, including among deleted users. */
export const insertUser = async (tx: Tx, wanted: NewUser, by: By, now = new Date()): Promise<UserRow> => {
  const name = refuseNewUser(wanted, now)
  const [user] = await tx
    .insert(users)
    .values({ id: uuidv7(), username: name, folded: foldUsername(name), enrolled: false, ...handedOut(by) })
    .onConflictDoNothing()
    .returning()
  if (!user) throw usernameTaken(wanted.username)
  const rows = (wanted.grants ?? []).map(({ role, scope = {}, expires_at = null }) => ({
    id: uuidv7(),
    subject_type: 'user' as const,
    subject_id: user.id,
    role,
    scope,
    expires_at,
    created_by: by.requested_by,
    confirmed_by: by.confirmed_by,
  }))
  if (rows.length > 0) await tx.insert(grants).values(rows)
  return user
}
