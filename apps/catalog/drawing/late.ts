import { lateHealth } from '../../../db/catalog/resources/health-now.ts'
import type { HealthStatus } from '../../shared/contracts/catalog/resources.ts'
import type { Uses } from '../deps.ts'
import type { Store } from '../graph/store.ts'

export type HealthOf = (rid: number) => HealthStatus

/** Health now of the store's nodes: the log tells of an expiry only after its sweep. */
export const healthIn = async ({ db, clock }: Uses<'db' | 'clock'>, store: Store): Promise<HealthOf> => {
  const late = await lateHealth(db, clock.now())
  return (rid) => late.get(rid) ?? (store.healthOf(rid) as HealthStatus)
}
