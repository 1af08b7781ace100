import { setTimeout as delay } from 'node:timers/promises'
import { Context } from '@temporalio/activity'

/** How long a claim or a result waits for Postgres; the workflow allows for both (launch.ts). */
const PATIENCE_MS = 20_000

/** Retries a statement during a short outage of Postgres; the heartbeat shows that the attempt is still at work. */
export const patiently = async <T>(write: () => Promise<T>): Promise<T> => {
  const end = Date.now() + PATIENCE_MS
  for (let wait = 100; ; wait = Math.min(wait * 2, 2000)) {
    try {
      return await write()
    } catch (error) {
      if (Date.now() + wait > end) throw error
      Context.current().heartbeat()
      await delay(wait)
    }
  }
}
