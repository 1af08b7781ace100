import type { FastifyRequest } from 'fastify'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Db, Tx } from '../../../db/client.ts'
import { closeChange, insertChange, type KnownChange, lockChange } from '../../../db/identity/changes.ts'
import { dualSince, getUser, heldGrants, usersByIds } from '../../../db/identity/queries.ts'
import { type ChangeKind, user_events } from '../../../db/identity/tables.ts'
import { refuseMachine } from '../../shared/auth/caller.ts'
import { permissionMissing } from '../../shared/auth/http.ts'
import { roleHas } from '../../shared/auth/permissions.ts'
import type { ChangeRequests, ChangeView } from '../../shared/contracts/identity/changes.ts'
import { notFound } from '../../shared/errors.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import type { ChangeDeps, Uses } from '../deps.ts'
import { actorOf, type Change, changeIdOf, changeOnce } from '../mutations.ts'
import { userOf } from '../principal.ts'
import {
  refuseClosed,
  refuseDigest,
  refuseOthersChange,
  refuseRequester,
  refuseSecondAdmin,
  refuseShownLink,
  throwIf,
} from '../rules.ts'
import { type ControlDeps, isSensitive, lockControl, noteDual } from './dual.ts'
import { type Asked, digestOf, subjectOf } from './subject.ts'

/** Who makes a change, as stored in rows. `link`: the id under which credential makes its enrolment link. */
export type By = { requested_by: string; confirmed_by: string | null; link: string }

/** What a measure works with; `requester` is the requesting user's id. */
export type Cause = { deps: ControlDeps; tx: Tx; req: FastifyRequest | undefined; requester: string }

/** A change that passes all rules. */
export type Permitted = {
  sensitive: boolean
  /** The accounts whose rights or credential it changes. */
  accounts: readonly string[]
  /** Whether it gives the account a credential that no administrator knows, or no new right. */
  renews?: boolean
  apply: (by: By) => Promise<Change<unknown> & { user_id?: string }>
}

/** One kind of change: refuses it by the current rules, under the lock of `lockControl`, or returns how to apply it. */
export type Measure<K extends ChangeKind = ChangeKind> = (
  cause: Cause,
  request: ChangeRequests[K],
) => Promise<Permitted>
export type Measures = { [K in ChangeKind]: Measure<K> }

const permit = (measures: Measures, cause: Cause, { kind, request }: Asked): Promise<Permitted> =>
  (measures[kind] as Measure<never>)(cause, request as never)

export const roleSensitivity = (deps: ControlDeps) => (role: string) => isSensitive(deps, role)

/**
 * Makes a change at once, or asks a second administrator for it: 202 with the pending change. If an installation has
 * only one administrator, that one suffices, and the audit log says so.
 */
export const perform = <K extends ChangeKind>(
  deps: ChangeDeps,
  req: FastifyRequest,
  asked: { kind: K; request: ChangeRequests[K] },
  measure: Measure<K>,
) =>
  changeOnce<unknown>(deps, req, { arming: true }, async (tx) => {
    const dual = await lockControl(deps, tx)
    const requester = req.caller.user_id
    const permitted = await measure({ deps, tx, req, requester }, asked.request)
    if (dual && permitted.sensitive) {
      await refuseShown(tx, permitted)
      return request(deps, tx, req, asked as Asked)
    }
    const { user_id: _, ...done } = await permitted.apply({
      requested_by: actorOf(req),
      confirmed_by: null,
      link: changeIdOf(req),
    })
    if (permitted.sensitive) await note(deps, tx, req, { ...done, action: 'single_control', reason: done.action })
    await noteDual(deps, tx)
    return done
  })

const request = async (deps: Uses<'config'>, tx: Tx, req: FastifyRequest, asked: Asked): Promise<Change<unknown>> => {
  const id = uuidv7()
  const subject = await subjectOf(tx, asked)
  const row = await insertChange(
    tx,
    { id, ...asked, subject, digest: digestOf(id, asked, subject), requested_by: actorOf(req) },
    deps.config.IDENTITY__DUAL__TTL_S,
  )
  const after = viewOf(row)
  const { kind, digest, requested_by, expires_at } = after
  return {
    status: 202,
    body: { change: { id, kind, digest, requested_by, expires_at } },
    action: 'change.requested',
    object: `change:${id}`,
    reason: kind,
    after,
    // The notifier tells the administrators, and whoever is to be reset while another one can still reject it.
    details: {
      subject: subject.name,
      ...((kind === 'user.reset' || kind === 'user.recover') && { resets: subject.id }),
    },
  }
}

/** POST adm/changes/{change_id}/confirm: makes the change if it is still the reviewed one and the rules allow it. */
export const confirmChange = (
  deps: ChangeDeps,
  measures: Measures,
  req: FastifyRequest,
  { change_id, digest }: { change_id: string; digest: string },
) =>
  changeOnce(deps, req, { arming: true }, async (tx) => {
    const dual = await lockControl(deps, tx)
    const { user_id } = req.caller
    throwIf(refuseMachine(req.caller))
    if (!(await mayAdminister(tx, user_id))) throw permissionMissing(['identity:admin'])
    const row = await findChange(tx, change_id)
    throwIf(refuseSecondAdmin(userOf(row.requested_by) === user_id))
    return carryOut({ deps, tx, req }, measures, row, { dual, by: actorOf(req), reviewed: digest })
  })

/** `npm run admin -- identity confirm`: anyone with database access counts as the second administrator. */
export const confirmHere = (deps: ControlDeps & { db: Db }, measures: Measures, change_id: string) =>
  deps.db.transaction(async (tx) => {
    const dual = await lockControl(deps, tx)
    const row = await findChange(tx, change_id)
    const {
      status: _,
      body,
      ...audit
    } = await carryOut({ deps, tx, req: undefined }, measures, row, { dual, by: 'system' })
    await note(deps, tx, undefined, audit)
    return body.change
  })

const carryOut = async (
  { deps, tx, req }: Omit<Cause, 'requester'>,
  measures: Measures,
  row: KnownChange,
  { dual, by, reviewed }: { dual: boolean; by: string; reviewed?: string },
): Promise<Change<{ change: ChangeView }>> => {
  const { id, requested_by } = row
  const asked = askedOf(row)
  throwIf(refuseClosed(row.state))
  const subject = await subjectOf(tx, asked)
  const digest = digestOf(id, asked, subject)
  throwIf(reviewed === undefined ? undefined : refuseDigest(reviewed, digest))
  const requester = userOf(requested_by)
  throwIf(refuseRequester(await mayAdminister(tx, requester)))
  const permitted = await permit(measures, { deps, tx, req, requester }, asked)
  throwIf(refuseSecondAdmin(permitted.accounts.includes(userOf(by))))
  if (dual) await refuseShown(tx, permitted)
  const { user_id, ...done } = await permitted.apply({ requested_by, confirmed_by: by, link: id })
  const decided = { status: 'confirmed', decided_by: by, subject, digest, ...(user_id && { user_id }) } as const
  const closed = await closeChange(tx, id, decided)
  throwIf(closed ? undefined : refuseClosed('expired'))
  await note(deps, tx, req, { ...done, on_behalf_of: requested_by })
  await noteDual(deps, tx)
  return decisionOf(closed ?? row)
}

/** POST adm/changes/{change_id}/reject, by any administrator, and /withdraw, by the requester. */
export const closeUnmade = (
  deps: ChangeDeps,
  req: FastifyRequest,
  change_id: string,
  status: 'rejected' | 'withdrawn',
) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    const row = await findChange(tx, change_id)
    throwIf(status === 'withdrawn' ? refuseOthersChange(row.requested_by === actorOf(req)) : undefined)
    throwIf(refuseClosed(row.state))
    const closed = await closeChange(tx, row.id, { status, decided_by: actorOf(req) })
    throwIf(closed ? undefined : refuseClosed('expired'))
    return decisionOf(closed ?? row)
  })

const decisionOf = (row: KnownChange): Change<{ change: ChangeView }> => {
  const change = viewOf(row)
  const { kind, status } = change
  return {
    status: 200,
    body: { change },
    action: `change.${status}`,
    object: `change:${row.id}`,
    reason: kind,
    after: change,
  }
}

export const findChange = async (tx: Tx, id: string): Promise<KnownChange> => {
  const row = isUuid(id) ? await lockChange(tx, id) : undefined
  if (!row) throw notFound('change', id, 'not_found')
  return row
}

export const askedOf = ({ kind, request }: Pick<KnownChange, 'kind' | 'request'>) =>
  ({ kind, request }) as unknown as Asked

/** A change as readers see it; for a pending one, the caller must pass the current subject and digest. */
export const viewOf = (row: KnownChange): ChangeView => ({
  id: row.id,
  kind: row.kind,
  status: row.state,
  digest: row.digest,
  request: row.request,
  subject: row.subject as ChangeView['subject'],
  requested_by: userOf(row.requested_by),
  requested_at: new Date(row.requested_at).toISOString(),
  expires_at: new Date(row.expires_at).toISOString(),
  decided_by: row.decided_by && userOf(row.decided_by),
  decided_at: row.decided_at && new Date(row.decided_at).toISOString(),
  user_id: row.user_id,
})

/** Whether this person is an administrator now, inside the transaction of a decision. */
const mayAdminister = async (tx: Tx, user_id: string): Promise<boolean> => {
  const user = await getUser(tx, user_id)
  if (user?.status !== 'ACTIVE') return false
  if (user.link_shown && (await dualSince(tx))) return false
  return (await heldGrants(tx, [user_id])).some(({ role }) => roleHas(role, 'identity:admin'))
}

/** If one administrator could use an account, a right for that account is a right for that administrator. */
const refuseShown = async (tx: Tx, { accounts, renews }: Permitted): Promise<void> => {
  if (renews) return
  const shown = (await usersByIds(tx, accounts)).filter(({ link_shown }) => link_shown)
  throwIf(refuseShownLink(shown.map(({ username }) => username)))
}

const note = (
  { keys }: Pick<ControlDeps, 'keys'>,
  tx: Tx,
  req: FastifyRequest | undefined,
  {
    action,
    object,
    reason,
    before,
    after,
    details,
    on_behalf_of,
  }: Omit<Change<unknown>, 'status' | 'body'> & { on_behalf_of?: string },
) =>
  appendAuditTo(tx, user_events, keys.audit, {
    actor: req ? actorOf(req) : 'system',
    roles: req?.caller.roles ?? [],
    action,
    object,
    outcome: 'done',
    reason: reason ?? null,
    before,
    after,
    details,
    ...(on_behalf_of && { on_behalf_of }),
    request_id: req ? String(req.id) : null,
  })
