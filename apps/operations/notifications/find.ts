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
import { anyWaits, listWaiting, type Waiting } from '../../../db/operations/notifications/waiting.ts'
import { type NotifyEvent, type NotifyRules, RISKS } from '../../shared/contracts/notifications/notifications.ts'
import type { Uses } from '../deps.ts'
import { quietUntil } from './messages/quiet.ts'
import { viewOf } from './view.ts'

type Deps = Uses<'clock' | 'config' | 'db' | 'telemetry' | 'trust'>

const EVERY_S = 5
const BATCH = 100

/** Finds the decisions that wait for people who want notices, and queues the notices not sent yet. */
export const findNotices = async (deps: Deps): Promise<void> => {
  if (!(await anyWaits(deps.db)) && !(await anyShown(deps.db))) return
  for (const { owner, rules } of await claimOwners(deps.db, EVERY_S, BATCH))
    await findFor(deps, owner, rules).catch((err: unknown) =>
      deps.telemetry.log.warn({ err, owner }, 'a person could not be looked for'),
    )
}

const findFor = async (deps: Deps, owner: string, rules: NotifyRules): Promise<void> => {
  const destinations = (await listDestinations(deps.db, owner)).filter(({ status }) => status === 'active')
  if (destinations.length === 0) return
  const view = await viewOf(owner, (user_id) => deps.trust.principals.get(user_id))
  const waiting = view ? await listWaiting(deps.db, view) : []
  const now = deps.clock.now().getTime()
  for (const destination of destinations) {
    if (destination.kind === 'push') await closeShown(deps, destination, waiting)
    const notices = waiting.flatMap((one) => noticeOf(rules, destination, one, now))
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

/** Once a shown decision no longer waits, its outcome replaces it; a gate's next round replaces it without that. */
const closeShown = async ({ db }: Deps, destination: Destination, waiting: readonly Waiting[]): Promise<void> => {
  for (const shown of await listShown(db, destination.destination_id)) {
    const now = waiting.find((one) => one.operation_id === shown.operation_id && one.object === shown.object)
    if (now?.round !== shown.round)
      await db.transaction((tx) => queueOutcome(tx, destination, shown, now === undefined))
  }
}

export const eventOf = ({
  object,
  round,
  escalation,
}: Pick<Waiting, 'object' | 'round' | 'escalation'>): NotifyEvent => {
  if (object.startsWith('patch:')) return 'patch.waiting'
  if (escalation > 0) return 'gate.escalated'
  return round > 1 ? 'gate.reopened' : 'gate.waiting'
}

/** Returns the notice that this destination gets about a decision now, if any. */
const noticeOf = (rules: NotifyRules, { destination_id, kind }: Destination, one: Waiting, now: number) => {
  const event = eventOf(one)
  const { operation_id, object, round, escalation, risk_level, waiting_since } = one
  // Devices come and go with sessions, so one that no step names is told at once.
  const named = rules.steps.some((step) => step.destination_id === destination_id)
  const steps = rules.steps.length === 0 || (kind === 'push' && !named) ? [{ destination_id, after_s: 0 }] : rules.steps
  const due = steps.some(
    (step) => step.destination_id === destination_id && Date.parse(waiting_since) + step.after_s * 1000 <= now,
  )
  if (!due || !rules.events.includes(event) || levelOf(risk_level) < levelOf(rules.min_risk)) return []
  const silent_until = quietUntil(rules.quiet, now)
  const urgent = isUrgent(one, silent_until)
  if (silent_until !== undefined && !urgent) return []
  return [{ operation_id, object, round, escalation, event, urgent }]
}

/** Whether quiet hours that end then do not hold it back: by its risk, or because it ends before them. */
export const isUrgent = (
  { risk_level, deadline_at }: Pick<Waiting, 'risk_level' | 'deadline_at'>,
  silent_until: number | undefined,
): boolean =>
  levelOf(risk_level) >= levelOf('high') ||
  (silent_until !== undefined && deadline_at !== null && Date.parse(deadline_at) < silent_until)

const levelOf = (risk: string): number => (RISKS as readonly string[]).indexOf(risk)
