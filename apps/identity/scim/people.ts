import { ableAdmins, getUserByFolded } from '../../../db/identity/queries.ts'
import { isNumbered, type Known, scimAdoptable } from '../../../db/identity/scim.ts'
import { type UserRow, users } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { eventActor } from '../mutations.ts'
import { isEmergency, refuseLastAdmin, refuseNewName, throwIf } from '../rules.ts'
import { setStatus } from '../users/change.ts'
import { scimError } from './errors.ts'
import type { Wanted } from './read.ts'
import type { Sync } from './source.ts'

/**
 * Throws unless a person can have this name: it is valid, and no account outside this directory has it. Of its own people
 * only the records' names count, as accounts keep theirs; and nobody needs the name of a deleted account.
 */
export const refuseName = async ({ tx, req }: Sync, name: string): Promise<void> => {
  if (refuseNewName(name, { provided: true }))
    throw scimError(400, 'invalidValue', "userName needs 1 to 128 letters of one script, digits or ._-@+'!#^~&.")
  const folded = foldUsername(name)
  const holder = await getUserByFolded(tx, folded)
  if (holder && !(await isNumbered(tx, req.directory.id, folded)))
    throw scimError(409, 'uniqueness', 'This userName is taken.')
}

export const DELETED_HERE = 'The account of this externalId was deleted here: unlink its identity first.'

/**
 * The account of a new person: the one that this provider created at their sign-in, the local one that they have linked
 * to it, or a new one. If the name is that of a deleted account or was of another person there, theirs is numbered: an
 * account never passes to another person.
 */
export const accountFor = async (one: Sync, { name = '', external_id }: Wanted): Promise<string> => {
  const provider = one.req.directory.id
  const adopted = external_id ? await scimAdoptable(one.tx, one.req.directory, external_id) : undefined
  if (adopted?.status === 'DELETED') throw scimError(409, 'uniqueness', DELETED_HERE)
  if (adopted && !isAdoptable(one, adopted))
    throw scimError(409, 'uniqueness', 'The account of this externalId is for emergencies, or of another provider.')
  if (adopted) return adopted.id
  await refuseName(one, name)
  let username = name
  for (let n = 2; await isNumbered(one.tx, provider, foldUsername(username)); n += 1) username = `${name}~${n}`
  await refuseName(one, username)
  const row = { id: uuidv7(), username, folded: foldUsername(username), link_shown: false, provider }
  await one.tx.insert(users).values(row)
  return row.id
}

/** A person who linked a local account has proved both. Emergency accounts must outlast the provider. */
const isAdoptable = ({ deps, req }: Sync, user: UserRow): boolean =>
  user.provider === null ? !isEmergency(deps.config, user) : user.provider === req.directory.id

/** Disables an account, or enables one that the directory itself disabled; `undefined` if already in that state. */
export const moveStatus = async ({ deps, tx, req, leaves }: Sync, { row }: Known, user: UserRow, active: boolean) => {
  if (active === (user.status === 'ACTIVE')) return undefined
  if (active && (user.status !== 'DISABLED' || row.disabled_at === null || row.disabled_at !== user.disabled_at))
    throw scimError(409, 'mutability', 'Disabled here by an administrator.')
  const admins = await ableAdmins(tx)
  const left = admins.filter((id) => id !== user.id)
  if (!active) throwIf(refuseLastAdmin(admins, left))
  if (!active) leaves(user.id)
  const event = { event_id: uuidv7(), actor: eventActor(req), request_id: String(req.id) }
  return setStatus(deps, tx, event, user, active ? 'ACTIVE' : 'DISABLED')
}
