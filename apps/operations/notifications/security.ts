import { countSecurity, queueDelivery, takeSecurity } from '../../../db/operations/notifications/deliveries.ts'
import { listDestinations } from '../../../db/operations/notifications/destinations.ts'
import type { Uses } from '../deps.ts'

const BATCH = 50
/** Limit for one destination, so that nobody can flood it by signing in again and again. */
const MOST_A_DAY = 50

/**
 * Creates messages about people's accounts: one per fact and active destination. Rules and quiet hours do not hold them
 * back.
 */
export const queueSecurity = ({ db, telemetry }: Uses<'db' | 'telemetry'>): Promise<void> =>
  db.transaction(async (tx) => {
    for (const { user_id, fact } of await takeSecurity(tx, BATCH)) {
      const destinations = await listDestinations(tx, `user:${user_id}`)
      for (const destination of destinations.filter(({ status }) => status === 'active')) {
        if ((await countSecurity(tx, destination.destination_id)) < MOST_A_DAY)
          await queueDelivery(tx, destination, 'security', fact)
        else telemetry.log.warn({ user_id, event: fact.event }, 'too many messages about one account in a day')
      }
    }
  })
