import {
  countSecurity,
  queueDelivery,
  takeSecurity,
  waitingSecurity,
} from '../../../db/operations/notifications/deliveries.ts'
import { listDestinations } from '../../../db/operations/notifications/destinations.ts'
import { ADMINISTRATORS } from '../../../db/operations/tables/index.ts'
import type { Uses } from '../deps.ts'

const BATCH = 50
/** Limit for one destination, so that nobody can flood it by signing in again and again. */
const MOST_A_DAY = 50

/**
 * Creates messages about people's accounts: one per fact and active destination, despite rules and quiet hours. Identity
 * is asked for the administrators before the transaction, once. While it is away, their facts alone wait.
 */
export const queueSecurity = async ({ db, telemetry, trust }: Uses<'db' | 'telemetry' | 'trust'>): Promise<void> => {
  const waiting = await waitingSecurity(db)
  if (!waiting.any) return
  const administrators = waiting.administrators
    ? await trust.administrators().catch((err: unknown) => {
        telemetry.log.warn({ err }, 'messages to the administrators wait for identity')
        return undefined
      })
    : undefined
  await db.transaction(async (tx) => {
    for (const { user_id, fact } of await takeSecurity(tx, BATCH, { administrators: administrators !== undefined })) {
      const people = user_id === ADMINISTRATORS ? (administrators ?? []) : [user_id]
      const destinations = await Promise.all(people.map((id) => listDestinations(tx, `user:${id}`)))
      for (const destination of destinations.flat().filter(({ status }) => status === 'active')) {
        if ((await countSecurity(tx, destination.destination_id)) < MOST_A_DAY)
          await queueDelivery(tx, destination, 'security', fact)
        else telemetry.log.warn({ user_id, event: fact.event }, 'too many messages about one account in a day')
      }
    }
  })
}
