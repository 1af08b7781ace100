import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { type AuditEntry, appendAuditTo } from '../../db/audit.ts'
import type { Tx } from '../../db/client.ts'
import { fingerprintOf, type IdempotentRequest } from '../../db/command/keys.ts'
import { keysIn, runAnswered } from '../../db/command/run.ts'
import { bumpUsers, type Cause, isUnapplied } from '../../db/identity/queries.ts'
import { idempotency, outbox, user_events } from '../../db/identity/tables.ts'
import { appendOutbox, wakeRelay } from '../../db/outbox.ts'
import { refuseStaleAuth } from '../shared/auth/caller.ts'
import { uuidv5, uuidv7 } from '../shared/ids.ts'
import { inLine } from '../shared/process/lines.ts'
import type { ChangeDeps, Uses } from './deps.ts'

/** What a mutation records besides its rows. */
export type Change<T> = {
  status: number
  body: T
  /** The version that the answer shows, for If-Match. */
  version?: number | undefined
  action: string
  object: string
  reason?: string | null
  before?: unknown
  after?: unknown
  details?: AuditEntry['details']
}

/** The author of a change, as rows and events name it. */
export const actorOf = (req: FastifyRequest): string => `user:${req.caller.user_id}`

const requestOf = (deps: Uses<'keys'>, req: FastifyRequest): IdempotentRequest => ({
  caller: actorOf(req),
  route: `${req.method} ${req.routeOptions.url}`,
  key: String(req.headers['idempotency-key']),
  fingerprint: fingerprintOf(deps.keys.fingerprint, {
    params: req.params,
    query: req.query,
    body: req.body ?? null,
    if_match: req.headers['if-match'] ?? null,
  }),
})

const NAMESPACE = 'b3c1f6ad-52a4-5c0e-9a5e-6f7f3f1d9c11'
/** One id per caller, route and key. Credential receives it, so that a repeat gets the same token. */
export const changeIdOf = (req: FastifyRequest): string =>
  uuidv5(NAMESPACE, `${actorOf(req)} ${req.method} ${req.url} ${req.headers['idempotency-key']}`)

/** Runs a transaction that takes `lockControl`. Of a crowd only a few hold connections while they wait for the lock. */
export const inControl = <T>(db: object, work: () => Promise<T>): Promise<T> => inLine(db, 'control', work)

/**
 * Runs one administrative change once per Idempotency-Key: key, rows, audit and events in one transaction. The caller's
 * password must be fresh unless the change only takes rights away. Returns the stored answer.
 */
export const changeOnce = async <T>(
  deps: ChangeDeps,
  req: FastifyRequest,
  { arming }: { arming: boolean },
  run: (tx: Tx) => Promise<Change<T>>,
) => {
  const stale = arming ? refuseStaleAuth(req.caller, deps.config.AUTH__REAUTH__MAX_AGE_S, deps.clock.now()) : undefined
  if (stale) throw stale
  const keep = async (tx: Tx) => {
    const { status, body, version, ...audit } = await run(tx)
    await appendAuditTo(tx, user_events, deps.keys.audit, {
      ...audit,
      actor: actorOf(req),
      roles: req.caller.roles,
      outcome: 'done',
      request_id: String(req.id),
    })
    return { status, body, ...(version !== undefined && { headers: { etag: `"${version}"` } }) }
  }
  const command = { request: requestOf(deps, req) }
  const once = () =>
    runAnswered({ db: deps.db, keys: keysIn(idempotency) }, command, async (tx) => ({
      effect: undefined,
      keep: () => keep(tx),
    }))
  // A change that takes rights away overtakes all that wait.
  const stored = await (arming ? inControl(deps.db, once) : once())
  if (!stored.replayed) void wakeRelay(deps.db, 'identity')
  return stored
}

/** Writes one audit row per 403, in a separate transaction, because that of the change was rolled back. */
export const recordDenial = (
  deps: Uses<'db' | 'keys'>,
  req: FastifyRequest,
  { code: reason }: { code: string },
): Promise<void> =>
  deps.db.transaction((tx) =>
    appendAuditTo(tx, user_events, deps.keys.audit, {
      actor: actorOf(req),
      roles: req.caller.roles,
      action: 'request.denied',
      object: `route:${req.method} ${req.routeOptions.url}`,
      outcome: 'denied',
      reason,
      request_id: String(req.id),
    }),
  )

const MAX_IDS = 500

/** Records changed rights of these people: a new version each, and one event (in parts of 500) that drops caches. */
export const rolesChanged = async (tx: Tx, req: FastifyRequest | undefined, user_ids: string[]): Promise<void> => {
  if (user_ids.length === 0) return
  await bumpUsers(tx, user_ids)
  for (let i = 0; i < user_ids.length; i += MAX_IDS) {
    await announce(tx, req, 'auth.user.roles_changed.v1', { user_ids: user_ids.slice(i, i + MAX_IDS) })
  }
}

/** The event on which the tokens of a machine's credential end. */
export const ENDED_CREDENTIAL = 'auth.user.credential_revoked.v1'

/** Writes an event that belongs to no version of one aggregate; returns its id. */
export const announce = async (
  tx: Tx,
  cause: FastifyRequest | Pick<StatusEvent, 'actor' | 'request_id'> | undefined,
  type: string,
  payload: Record<string, unknown>,
): Promise<string> => {
  const event_id = uuidv7()
  const { actor, request_id } = cause && 'actor' in cause ? cause : statusEventOf(cause)
  await appendOutbox(tx, outbox, {
    event_id,
    agg_type: type.split(/[._]/)[2] ?? type,
    agg_id: event_id,
    agg_version: 1,
    type,
    payload: { ...payload, actor },
    request_id,
  })
  return event_id
}

const MARK_MS = 2000
/** Whether the relay has ended the sessions for this cause, within 2 s. An event that is no longer stored counts. */
export const marked = async ({ db }: Uses<'db'>, of: Cause): Promise<boolean> => {
  const end = performance.now() + MARK_MS
  while (await isUnapplied(db, of)) {
    if (performance.now() > end) return false
    await delay(25)
  }
  return true
}

/** The same in the words of an answer. */
export const endedOf = async (deps: Uses<'db'>, user_id: string): Promise<'revoked' | 'pending'> =>
  (await marked(deps, { user_id })) ? 'revoked' : 'pending'

/** How an event about a new status names itself and its cause. */
export type StatusEvent = { event_id: string; actor: { type: string; id: string }; request_id: string | null }
export const statusEventOf = (req: FastifyRequest | undefined): StatusEvent => ({
  event_id: req ? uuidv5(changeIdOf(req), 'status') : uuidv7(),
  actor: eventActor(req),
  request_id: req ? String(req.id) : null,
})

export const eventActor = (req: FastifyRequest | undefined) =>
  req ? { type: 'user', id: req.caller.user_id } : { type: 'system', id: 'bootstrap' }
