import {
  anyShown,
  listShown,
  queueNotices,
  queueOutcome,
  queuePushes,
} from '../../../db/operations/notifications/deliveries.ts'
import {
  claimOwners,
  type Destination,
  listDestinations,
  lockDestination,
} from '../../../db/operations/notifications/destinations.ts'
import {
  anyHold,
  anyWaits,
  endHolds,
  listOpen,
  listWaiting,
  untold,
  type View,
  type Waiting,
} from '../../../db/operations/notifications/waiting.ts'
import { RISKS } from '../../shared/contracts/notifications/notifications.ts'
import type { NotifyRules } from '../../shared/contracts/notifications/rules.ts'
import type { Uses } from '../deps.ts'
import { quietUntil } from './messages/quiet.ts'
import { viewOf } from './view.ts'

type Deps = Uses<'clock' | 'config' | 'db' | 'telemetry' | 'trust'>

const EVERY_S = 5
const BATCH = 100

/**
 * Finds the decisions and failures of people who want notices, and queues the notices not sent yet. Returns whether
 * more people may wait to be looked for.
 */
export const findNotices = async (deps: Deps): Promise<boolean> => {
  if (!(await anyWaits(deps.db)) && !(await anyShown(deps.db)) && !(await anyHold(deps.db))) return false
  const claimed = await claimOwners(deps.db, EVERY_S, BATCH)
  const failures: unknown[] = []
  for (const { owner, rules } of claimed)
    await findFor(deps, owner, rules).catch((err: unknown) => void failures.push(err))
  const [err] = failures
  if (err !== undefined) deps.telemetry.log.warn({ err, owners: failures.length }, 'some could not be looked for')
  // What fails for one may fail for all, at once: then the next batch waits.
  return claimed.length === BATCH && failures.length === 0
}

const findFor = async (deps: Deps, owner: string, rules: NotifyRules): Promise<void> => {
  const destinations = (await listDestinations(deps.db, owner)).filter(({ status }) => status === 'active')
  if (destinations.length === 0) return
  const view = await viewOf(owner, (user_id) => deps.trust.principals.get(user_id))
  const silent_until = quietUntil(rules.quiet, deps.clock.now().getTime())
  for (const destination of destinations) {
    if (destination.kind === 'push') await closeShown(deps, destination, view, rules)
    await endHolds(deps.db, destination.destination_id)
    const after_s = afterOf(rules, destination, destinations)
    if (!view || after_s === undefined) continue
    const waiting = await listWaiting(deps.db, view, untold(destination.destination_id, rules, after_s))
    const notices = waiting.flatMap((one) => noticeOf(one, silent_until))
    if (notices.length === 0) continue
    await deps.db.transaction(async (tx) => {
      const locked = await lockDestination(tx, destination.destination_id)
      if (locked?.status !== 'active' || locked.owner !== owner) return
      const times = { gather_s: deps.config.NOTIFY__GATHER_S, digest_s: rules.digest_s }
      if (locked.kind === 'push') await queuePushes(tx, locked, notices, times.gather_s)
      else await queueNotices(tx, locked, notices, times)
    })
  }
}

/**
 * When after the start of the wait this destination is told; `undefined`: never. Steps to destinations that are gone do
 * not count: rules of none but those tell every destination, rather than nobody.
 */
const afterOf = ({ steps }: NotifyRules, { destination_id, kind }: Destination, active: readonly Destination[]) => {
  const live = steps.filter((step) => active.some((one) => one.destination_id === step.destination_id))
  const own = live.filter((step) => step.destination_id === destination_id)
  // Devices come and go with sessions, so one that no step names is told at once.
  if (live.length === 0 || (kind === 'push' && own.length === 0)) return 0
  return own.length > 0 ? Math.min(...own.map(({ after_s }) => after_s)) : undefined
}

/**
 * Once a shown decision or hold is over, its outcome replaces it. The next round or the failure does so itself, unless
 * the rules leave it out.
 */
const closeShown = async (
  { db }: Deps,
  destination: Destination,
  view: View | undefined,
  { events }: NotifyRules,
): Promise<void> => {
  const all = await listShown(db, destination.destination_id)
  const waiting = view && all.length > 0 ? await listOpen(db, view, all) : []
  for (const shown of all) {
    const now = waiting.find((one) => one.operation_id === shown.operation_id && one.object === shown.object)
    const told = now === undefined || !events.includes(now.event)
    if (now?.round !== shown.round) await db.transaction((tx) => queueOutcome(tx, destination, shown, told))
  }
}

/** The notice about one of them, unless quiet hours that end then hold it back. */
const noticeOf = (one: Waiting, silent_until: number | undefined) => {
  const { operation_id, object, round, escalation, event } = one
  const urgent = isUrgent(one, silent_until)
  return silent_until !== undefined && !urgent ? [] : [{ operation_id, object, round, escalation, event, urgent }]
}

/** Whether quiet hours that end then do not hold it back: by its risk, or because it ends before them. */
export const isUrgent = (
  { risk_level, deadline_at }: Pick<Waiting, 'risk_level' | 'deadline_at'>,
  silent_until: number | undefined,
): boolean =>
  levelOf(risk_level) >= levelOf('high') ||
  (silent_until !== undefined && deadline_at !== null && Date.parse(deadline_at) < silent_until)

const levelOf = (risk: string): number => (RISKS as readonly string[]).indexOf(risk)
