import { findNotices } from '../../../apps/operations/notifications/find.ts'
import { sendDue } from '../../../apps/operations/notifications/send.ts'
import { type Person, type Platform, person } from './platform.ts'

let number = 0

/** An approver with their own team for one test; removes messages that another test left behind. */
export const newcomer = async (p: Platform): Promise<Person & { team: string }> => {
  for (const table of ['destinations', 'rules', 'deliveries', 'notices', 'security'])
    await p.query(`delete from operations.notify_${table}`)
  number += 1
  const team = `team${number}`
  const made = { ...person(`eva${number}`, ['approver'], [team]), team }
  Object.assign(p.people, { [made.name]: made })
  return made
}

/** Lets a node fail, so that it holds up its operation from then on. */
export const holdUp = (p: Platform, operation_id: string, after_s = 0) =>
  p.query(
    `with n as (update operations.nodes set state = 'failed', ended_at = clock_timestamp() + make_interval(secs => $2)
       where operation_id = $1 and node_id = 'behind')
     update operations.operations set failed = 1 where operation_id = $1`,
    [operation_id, after_s],
  )

/** Looks for decisions and failures, in every process at once. */
export const find = async (p: Platform): Promise<void> => {
  await p.query('update operations.notify_rules set looked_at = null')
  await Promise.all(p.running.map(({ deps }) => findNotices(deps)))
}

/** Sends due messages, in every process at once. */
export const send = async (p: Platform): Promise<void> => {
  await Promise.all(p.running.map(({ deps }) => deps.channels && sendDue({ ...deps, channels: deps.channels })))
}

/** Looks and sends, twice in every process. */
export const notify = async (p: Platform): Promise<void> => {
  await find(p)
  await Promise.all([send(p), send(p)])
}
