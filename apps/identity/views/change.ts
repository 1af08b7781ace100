import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import type { Tx } from '../../../db/client.ts'
import { lockUser } from '../../../db/identity/queries.ts'
import type { SavedViewRow } from '../../../db/identity/tables.ts'
import {
  countViews,
  deleteView,
  insertView,
  isMember,
  isViewName,
  lockView,
  updateView,
} from '../../../db/identity/views.ts'
import type { NewView, SavedView, ViewPatch } from '../../shared/contracts/identity/views.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { ChangeDeps } from '../deps.ts'
import { changeOnce } from '../mutations.ts'
import { refuseVersion, throwIf } from '../rules.ts'

const MOST = 50

/** `owner`: who shares it; `null` for the caller's own. */
export const savedView = (row: SavedViewRow, owner: string | null = null): SavedView => ({
  ...{ view_id: row.id, group: row.group_key, owner },
  ...pick(row, 'list', 'name', 'filters', 'version'),
  created_at: new Date(row.created_at).toISOString(),
})

const known = (name: string) =>
  new AppError('version_conflict', 'view_exists', `You already have a view named "${name}".`)

/** A view is shared only with a group of its owner. */
const refuseForeign = async (tx: Tx, user_id: string, group: string | null): Promise<void> => {
  if (group !== null && !(await isMember(tx, user_id, group))) throw notFound('group', group, 'not_found')
}

/** Saves a list's search under a name. The lock on the person makes the limit exact. */
export const createView = (
  deps: ChangeDeps,
  req: FastifyRequest,
  { list, name: given, filters, group = null }: Static<typeof NewView>,
) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    const { user_id } = req.caller
    const name = given.normalize('NFC')
    await lockUser(tx, user_id)
    if ((await countViews(tx, user_id)) >= MOST)
      throw new AppError('validation_error', 'too_many_views', `You already have ${MOST} views, the most allowed.`, {
        status: 422,
      })
    await refuseForeign(tx, user_id, group)
    const row = await insertView(tx, { id: uuidv7(), user_id, list, name, filters, group_key: group })
    if (!row) throw known(name)
    const view = savedView(row)
    const { version } = view
    return { status: 201, body: view, version, action: 'view.created', object: `view:${row.id}`, after: view }
  })

/** The caller's own view, at the version that was read. Another person's view is not found. */
const lockOwn = async (tx: Tx, req: FastifyRequest, view_id: string): Promise<SavedViewRow> => {
  await lockUser(tx, req.caller.user_id)
  const row = await lockView(tx, req.caller.user_id, view_id)
  if (!row) throw notFound('view', view_id, 'not_found')
  throwIf(refuseVersion(row, req.headers['if-match']))
  return row
}

export const changeView = (deps: ChangeDeps, req: FastifyRequest, view_id: string, patch: Static<typeof ViewPatch>) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    const before = await lockOwn(tx, req, view_id)
    const { filters = before.filters, group = before.group_key } = patch
    const name = patch.name?.normalize('NFC') ?? before.name
    if (await isViewName(tx, req.caller.user_id, name, view_id)) throw known(name)
    if (group !== before.group_key) await refuseForeign(tx, req.caller.user_id, group)
    const row = await updateView(tx, view_id, { name, filters, group_key: group, version: before.version + 1 })
    const view = savedView(row ?? before)
    return {
      status: 200,
      body: view,
      version: view.version,
      action: 'view.changed',
      object: `view:${view_id}`,
      before: savedView(before),
      after: view,
    }
  })

export const removeView = (deps: ChangeDeps, req: FastifyRequest, view_id: string) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    const before = savedView(await lockOwn(tx, req, view_id))
    await deleteView(tx, view_id)
    return { status: 204, body: undefined, action: 'view.deleted', object: `view:${view_id}`, before }
  })
