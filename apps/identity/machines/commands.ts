import type { FastifyRequest } from 'fastify'
import type Type from 'typebox'
import type { Db, Queryable, Tx } from '../../../db/client.ts'
import { credentialsOf, listMachines, ownersOf } from '../../../db/identity/machines.ts'
import { getUser, heldGrants } from '../../../db/identity/queries.ts'
import { machine_owners, type UserRow, users } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import type { MachineView, NewMachine } from '../../shared/contracts/identity/machines.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import { lockControl } from '../control/dual.ts'
import type { IdentityDeps } from '../deps.ts'
import { changeOnce, rolesChanged } from '../mutations.ts'
import { refuseDeleted, throwIf } from '../rules.ts'
import { usernameTaken } from '../users/new.ts'
import { credentialView, lockMachine } from './measures.ts'

const viewsOf = async (db: Queryable, machines: UserRow[]): Promise<MachineView[]> => {
  const ids = machines.map(({ id }) => id)
  const [owners, credentials, held] = await Promise.all([
    ownersOf(db, ids),
    credentialsOf(db, ids),
    heldGrants(db, ids),
  ])
  return machines.map(({ id, username, status, created_at }) => ({
    id,
    username,
    status,
    created_at: new Date(created_at).toISOString(),
    roles: [...new Set(held.flatMap(({ user_id, role }) => (user_id === id ? [role] : [])))].sort(),
    owners: owners
      .filter(({ machine_id }) => machine_id === id)
      .map(({ user_id, username: name, status: state }) => ({ id: user_id, username: name, status: state })),
    credentials: credentials.filter(({ machine_id }) => machine_id === id).map(credentialView) as never,
  }))
}

export const pageOfMachines = async (db: Db, page: Parameters<typeof listMachines>[1]) =>
  viewsOf(db, await listMachines(db, page))

const MOST_OWNERS = 5
const ownerInvalid = (detail: string) => new AppError('validation_error', 'machine_owner_invalid', detail)

/** Owners are responsible for the machine and must be active people. */
const addOwners = async (tx: Tx, machine_id: string, owners: readonly string[]) => {
  for (const user_id of owners) {
    const owner = await getUser(tx, user_id)
    if (owner?.status !== 'ACTIVE' || owner.kind !== 'person')
      throw ownerInvalid(`The owner "${user_id}" is not an active person.`)
    await tx.insert(machine_owners).values({ machine_id, user_id }).onConflictDoNothing()
  }
  // Who left takes no place.
  const active = (await ownersOf(tx, [machine_id])).filter(({ status }) => status === 'ACTIVE')
  if (active.length > MOST_OWNERS) throw ownerInvalid(`A machine can have at most ${MOST_OWNERS} owners.`)
}

/** POST adm/machines: an account without password, rights or credentials; these follow under dual control. */
export const createMachine = (
  deps: IdentityDeps,
  req: FastifyRequest,
  { name, owners }: Type.Static<typeof NewMachine>,
) =>
  changeOnce(deps, req, { arming: true }, async (tx) => {
    await lockControl(deps, tx)
    const username = `machine:${name}`
    const [user] = await tx
      .insert(users)
      .values({ id: uuidv7(), username, folded: foldUsername(username), kind: 'machine', link_shown: false })
      .onConflictDoNothing()
      .returning()
    if (!user) throw usernameTaken(username)
    await addOwners(tx, user.id, owners)
    const [view] = await viewsOf(tx, [user])
    return { status: 201, body: view, action: 'machine.created', object: `user:${user.id}`, after: view }
  })

/** PUT adm/machines/{machine_id}/owners/{user_id}: adds an owner; the earlier ones remain responsible. */
export const addOwner = (deps: IdentityDeps, req: FastifyRequest, machine_id: string, user_id: string) =>
  changeOnce(deps, req, { arming: true }, async (tx) => {
    await lockControl(deps, tx)
    const machine = await lockMachine(tx, machine_id)
    throwIf(refuseDeleted(machine))
    if (!isUuid(user_id)) throw notFound('user', user_id, 'not_found')
    await addOwners(tx, machine.id, [user_id])
    await rolesChanged(tx, req, [machine.id])
    return {
      status: 204,
      body: undefined,
      action: 'machine.owner_added',
      object: `user:${machine.id}`,
      after: { user_id },
      details: { user_id },
    }
  })
