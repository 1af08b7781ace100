import type { Tx } from '../../../db/client.ts'
import {
  countSecurity,
  queueDelivery,
  takeSecurity,
  waitingSecurity,
} from '../../../db/operations/notifications/deliveries.ts'
import { listHearing } from '../../../db/operations/notifications/destinations.ts'
import { ADMINISTRATORS, type SecurityFact } from '../../../db/operations/tables/index.ts'
import type { Uses } from '../deps.ts'

const BATCH = 50
/** Limit for one destination and kind of event: many sign-ins must not flood it, nor guesses silence other events. */
const MOST_A_DAY = 50

/** Queues a message about an account for whoever hears of it; returns how many were too many for a day. */
export const queueFact = async (tx: Tx, user_id: string, fact: SecurityFact): Promise<number> => {
  let over = 0
  for (const destination of await listHearing(tx, `user:${user_id}`)) {
    const told = await countSecurity(tx, destination.destination_id, fact.event)
    const last = told === MOST_A_DAY - 1 && { last: true as const }
    if (told < MOST_A_DAY) await queueDelivery(tx, destination, 'security', { ...fact, ...last })
    else over += 1
  }
  return over
}

/**
 * Creates messages about people's accounts: one per fact and active destination, despite rules and quiet hours. Identity
 * is asked for the administrators before the transaction, once. While it is away, their facts alone wait. Returns whether more may.
 */
export const queueSecurity = async ({ db, telemetry, trust }: Uses<'db' | 'telemetry' | 'trust'>): Promise<boolean> => {
  const waiting = await waitingSecurity(db)
  if (!waiting.any) return false
  const administrators = waiting.administrators
    ? await trust.administrators().catch((err: unknown) => {
        telemetry.log.warn({ err }, 'messages to the administrators wait for identity')
        return undefined
      })
    : undefined
  return db.transaction(async (tx) => {
    const taken = await takeSecurity(tx, BATCH, { administrators: administrators !== undefined })
    for (const { user_id, fact } of taken) {
      const people = user_id === ADMINISTRATORS ? (administrators ?? []) : [user_id]
      for (const id of people)
        if ((await queueFact(tx, id, fact)) > 0)
          telemetry.log.warn({ user_id, event: fact.event }, 'too many messages about one account in a day')
    }
    return taken.length === BATCH
  })
}
