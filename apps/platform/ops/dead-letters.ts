import { sql } from 'drizzle-orm'
import { type AuditTable, appendAuditTo } from '../../../db/audit.ts'
import { audit as catalogAudit, inboxOf as catalogInbox } from '../../../db/catalog/tables.ts'
import type { Db, Tx } from '../../../db/client.ts'
import { type DeadLetter, type InboxTables, listDeadLetters, releaseLetter } from '../../../db/inbox.ts'
import { listDead, reviveDelivery } from '../../../db/operations/notifications/deliveries.ts'
import { audit as operationsAudit, inboxOf as operationsInbox } from '../../../db/operations/tables/index.ts'
import { followOperation } from '../../catalog/operations/follow.ts'
import { createRequestedIntent } from '../../operations/intents/requested.ts'
import { secretKeysOf } from '../../shared/config.ts'
import { deriveKey } from '../../shared/data/digest.ts'
import { indexDeps, OpsError, operator, printTable, projectionOf, settingOf, withDb } from './access.ts'

/** Events that block successors: set aside by a consumer, or parked as NATS refuses them. Also notices given up. */
type Letter = { app: string; place: string; event_id: string; about: string; at: string; error: string }

/** How a consumer resumes a released aggregate. */
type Consumer = {
  tables: InboxTables
  audit: AuditTable
  follow: (db: Db, letter: DeadLetter) => Promise<'followed' | 'parked again'>
}

const CONSUMERS: Record<string, Consumer> = {
  operations: {
    tables: operationsInbox,
    audit: operationsAudit,
    follow: (db, { agg_type, agg_id }) => projectionOf(db, createRequestedIntent).followOne(agg_type, agg_id),
  },
  catalog: {
    tables: catalogInbox,
    audit: catalogAudit,
    follow: (db, { agg_id }) => followOperation(indexDeps(db), agg_id),
  },
}
const MESSAGE = 'operations, message'
const PUBLISHERS = ['identity', 'credential', 'token', 'catalog', 'operations']

const parkedRows = async (db: Db, schema: string) => {
  const { rows } = await db.execute<{ event_id: string; about: string; at: string; error: string }>(
    sql`select event_id, agg_type || ' ' || agg_id || ' v' || agg_version as about, occurred_at::text as at, parked as error
        from ${sql.identifier(schema)}.outbox where parked is not null and published_at is null order by pub_seq`,
  )
  return rows
}

const listAll = async (): Promise<Letter[]> => {
  const letters: Letter[] = []
  for (const [app, { tables }] of Object.entries(CONSUMERS)) {
    const found = await withDb(app, (db) => listDeadLetters(db, tables))
    for (const { consumer, event_id, agg_type, agg_id, agg_version, error, parked_at: at } of found) {
      const about = `${agg_type} ${agg_id} v${agg_version}`
      letters.push({ app, place: `${app}, consumer ${consumer}`, event_id, about, at, error })
    }
  }
  for (const app of PUBLISHERS)
    for (const row of await withDb(app, (db) => parkedRows(db, app)))
      letters.push({ app, place: `${app}, not published`, ...row })
  for (const { delivery_id, purpose, kind, shown, owner, ended_at, last_error } of await withDb('operations', listDead))
    letters.push({
      app: 'operations',
      place: MESSAGE,
      event_id: delivery_id,
      about: `${purpose} for ${owner} by ${kind ? `${kind} ${shown}` : 'a deleted destination'}`,
      at: String(ended_at),
      error: String(last_error),
    })
  return letters
}

const list = async (): Promise<number> => {
  const letters = await listAll()
  if (letters.length === 0) {
    console.log('No event is set aside, and no message was given up.')
    return 0
  }
  printTable(
    ['ID', 'WHERE', 'ABOUT', 'SINCE', 'WHY'],
    letters.map(({ event_id, place, about, at, error }) => [
      event_id,
      place,
      about,
      at.slice(0, 19),
      error.slice(0, 80),
    ]),
  )
  return 3
}

const find = async (event_id: string | undefined): Promise<Letter> => {
  const found = (await listAll()).find((letter) => letter.event_id === event_id)
  if (!found)
    throw new OpsError(`No event or message ${event_id ?? ''} is set aside. "dead-letters list" shows those that are.`)
  return found
}

/** Lets a consumer's aggregate resume, and reports how far it got. */
const release = (app: string, event_id: string, drop?: { reason: string }): ReturnType<Consumer['follow']> =>
  withDb(app, async (db) => {
    const { tables, audit, follow } = CONSUMERS[app] as Consumer
    const letter = (await listDeadLetters(db, tables)).find((one) => one.event_id === event_id)
    if (!letter) throw new OpsError(`Someone else has already decided on the event ${event_id}.`)
    await db.transaction(async (tx) => {
      await releaseLetter(tx, tables, letter, drop !== undefined)
      await appendAuditTo(tx, audit, auditKeyOf(app), {
        actor: operator(),
        action: drop ? 'dead_letter.drop' : 'dead_letter.requeue',
        object: `event:${event_id}`,
        outcome: 'done',
        reason: drop?.reason ?? null,
      })
    })
    return follow(db, letter)
  })

const auditKeyOf = (app: string) => deriveKey(secretKeysOf(JSON.parse(settingOf(app, 'SECRET__KEYS')))[0], 'audit')

/** Sends a message again, or drops it from the list. It is one transaction, so of two people only one decides. */
const settleMessage = (delivery_id: string, state: 'queued' | 'obsolete', reason: string | null): Promise<number> =>
  withDb('operations', (db) =>
    db.transaction(async (tx) => {
      const message = await reviveDelivery(tx, delivery_id, state)
      if (!message) throw new OpsError(`Someone else has already decided on the message ${delivery_id}.`)
      await appendAuditTo(tx, operationsAudit, auditKeyOf('operations'), {
        actor: operator(),
        action: state === 'queued' ? 'notify.delivery.redeliver' : 'notify.delivery.drop',
        object: `notification:${delivery_id}`,
        outcome: 'done',
        reason,
      })
      console.log(`${delivery_id}: ${state === 'queued' ? 'operations sends it again.' : 'dropped.'}`)
      return 0
    }),
  )

/** Has the relay try an event again or, for a reason, drops it. The audit log of operations has either, for every app. */
const settleUnpublished = (app: string, event_id: string, reason: string | null): Promise<void> => {
  const dropped = sql`published_at = clock_timestamp(), parked = ${`dropped by ${operator()}: ${reason}`} || ' (was: ' || parked || ')'`
  return withDb(app, (db) =>
    db.transaction(async (tx) => {
      const { rowCount } = await tx.execute(
        sql`update ${sql.identifier(app)}.outbox set ${reason === null ? sql`parked = null` : dropped}
            where event_id = ${event_id} and parked is not null and published_at is null`,
      )
      if (!rowCount) throw new OpsError(`Someone else has already decided on the event ${event_id}.`)
      const entry = {
        actor: operator(),
        action: reason === null ? 'outbox.requeue' : 'outbox.drop',
        object: `event:${event_id}`,
        outcome: 'done' as const,
        reason,
      }
      const append = (own: Tx) => appendAuditTo(own, operationsAudit, auditKeyOf('operations'), entry)
      await (app === 'operations' ? append(tx) : withDb('operations', (log) => log.transaction(append)))
    }),
  )
}

const requeue = async (event_id: string | undefined): Promise<number> => {
  const { app, place } = await find(event_id)
  if (place === MESSAGE) return settleMessage(String(event_id), 'queued', null)
  if (place.endsWith('not published')) {
    await settleUnpublished(app, String(event_id), null)
    console.log(`${event_id}: the relay tries to publish it again.`)
    return 0
  }
  const outcome = await release(app, String(event_id))
  console.log(
    outcome === 'followed'
      ? `${event_id}: applied, with the events behind it.`
      : `${event_id}: it failed again and is set aside as before; "dead-letters list" shows why.`,
  )
  return outcome === 'followed' ? 0 : 3
}

const drop = async (event_id: string | undefined, reason: string | undefined): Promise<number> => {
  if (!reason?.trim()) throw new OpsError('Dropping an event needs --reason "…": it is written to the audit log.')
  const { app, place } = await find(event_id)
  if (place === MESSAGE) return settleMessage(String(event_id), 'obsolete', reason)
  if (place.endsWith('not published')) {
    await settleUnpublished(app, String(event_id), reason)
    console.log(`${event_id}: it will not be published; consumers that miss it fetch it from ${app}.`)
    return 0
  }
  const outcome = await release(app, String(event_id), { reason })
  console.log(
    `${event_id}: dropped${outcome === 'followed' ? ', and the events behind it are applied.' : '; an event behind it is now set aside.'}`,
  )
  return outcome === 'followed' ? 0 : 3
}

export const deadLetters = async (
  action = 'list',
  event_id: string | undefined,
  reason: string | undefined,
): Promise<number> => {
  if (action === 'list') return list()
  if (action === 'requeue') return requeue(event_id)
  if (action === 'drop') return drop(event_id, reason)
  throw new OpsError(`dead-letters cannot ${action}: it can list, requeue and drop.`)
}
