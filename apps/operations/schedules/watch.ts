import type { Tx } from '../../../db/client.ts'
import { readChangeMark } from '../../../db/operations/history/tail.ts'
import { beginRun, lockWatching, moveSchedule, type Schedule } from '../../../db/operations/plans/schedules.ts'
import { AppError } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { resolveTargets } from '../targets/resolve.ts'

/** The most resources that may meet one condition. */
const MOST = 1000

/** Begins a run for resources that newly meet a schedule's condition; one that stops and begins again counts again. */
export const watchConditions = (deps: Uses<'clock' | 'db'>): Promise<void> =>
  deps.db.transaction(async (tx) => {
    const seen = await readChangeMark(tx)
    for (const schedule of await lockWatching(tx, seen)) {
      await look(deps, tx, schedule)
      await moveSchedule(tx, schedule.schedule_id, { seen })
    }
  })

const look = async ({ clock }: Uses<'clock'>, tx: Tx, schedule: Schedule): Promise<void> => {
  const { schedule_id, when, matched } = schedule
  if (!('on' in when)) return
  try {
    const now = (await resolveTargets(tx, { targets: [{ selector: when.on }] }, MOST)).map((one) => one.resource_id)
    const fresh = now.filter((id) => !matched.includes(id))
    if (fresh.length > 0) await beginRun(tx, schedule_id, clock.now().toISOString(), { targets: fresh })
    if (fresh.length > 0 || now.length < matched.length) await moveSchedule(tx, schedule_id, { matched: now })
  } catch (error) {
    if (!(error instanceof AppError) || error.status >= 500) throw error
    await moveSchedule(tx, schedule_id, { status: 'paused', status_reason: error.message })
  }
}
