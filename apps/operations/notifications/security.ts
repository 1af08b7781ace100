import type { Tx } from '../../../db/client.ts'
import { countSecurity, queueDelivery, takeSecurity } from '../../../db/operations/notifications/deliveries.ts'
import { listDestinations, listPeople } from '../../../db/operations/notifications/destinations.ts'
import { ADMINISTRATORS } from '../../../db/operations/tables/index.ts'
import type { OperationsDeps, Uses } from '../deps.ts'

const BATCH = 50
/** Limit for one destination, so that nobody can flood it by signing in again and again. */
const MOST_A_DAY = 50

/** Creates messages about people's accounts: one per fact and active destination, despite rules and quiet hours. */
export const queueSecurity = ({ db, telemetry, trust }: Uses<'db' | 'telemetry' | 'trust'>): Promise<void> =>
  db.transaction(async (tx) => {
    for (const { user_id, fact } of await takeSecurity(tx, BATCH)) {
      const owners = user_id === ADMINISTRATORS ? await administrators(tx, trust) : [`user:${user_id}`]
      const destinations = await Promise.all(owners.map((owner) => listDestinations(tx, owner)))
      for (const destination of destinations.flat().filter(({ status }) => status === 'active')) {
        if ((await countSecurity(tx, destination.destination_id)) < MOST_A_DAY)
          await queueDelivery(tx, destination, 'security', fact)
        else telemetry.log.warn({ user_id, event: fact.event }, 'too many messages about one account in a day')
      }
    }
  })

/** Of those who want to be reached. Throws if identity is away: the facts stay, and are told later. */
const administrators = async (tx: Tx, { principals }: OperationsDeps['trust']): Promise<string[]> => {
  const found = await Promise.all(
    (await listPeople(tx)).map(async (owner) => {
      const principal = await principals.get(owner.slice('user:'.length))
      return principal?.user.status === 'ACTIVE' && principal.roles.includes('admin') ? [owner] : []
    }),
  )
  return found.flat()
}
