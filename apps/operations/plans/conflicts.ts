import { sql } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import { type Blocker, listBlockers } from '../../../db/operations/leases/rows.ts'
import { listFreezesNow } from '../../../db/operations/plans/calendar.ts'
import { type Failing, listComing, listFailingAlike, listRivalPlans } from '../../../db/operations/plans/planning.ts'
import type { Plan, Reach } from '../../../db/operations/plans/rows.ts'
import { intents } from '../../../db/operations/tables/index.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import { nextOpening } from '../../shared/data/calendar.ts'
import { pluck } from '../../shared/data/pick.ts'
import type { OperationsDeps, Uses } from '../deps.ts'
import { seenOperations, seenResources, type Viewer, visibleSql } from '../policies/authority.ts'
import { libraryNow } from '../targets/calendar.ts'
import { comingFor, holdersFor } from './leases.ts'

type Conflicts = PlanView['conflicts']

/** The plan and the ids of the dependents of its targets. */
type Planned = Reach | (Pick<Plan, 'document' | 'intent_id'> & { dependents: readonly string[] })

/**
 * Returns the current obstacles to a plan (operations.md 3.5): operations that hold its targets, the places that
 * contain them, or direct dependents, and those that wait for its targets; closed windows; freezes; other plans that
 * are ready for the same targets; and operations in which the same change has failed. For an operation that already
 * runs (`running`), it returns the obstacles besides itself. Of those that this viewer may not see, it tells only the
 * kind; of failures, none.
 */
export const listConflicts = async (
  db: Queryable,
  { library, clock }: Uses<'library' | 'clock'>,
  viewer: Viewer,
  plan: Planned,
  running?: string,
): Promise<Conflicts> => {
  const { document, intent_id } = plan
  const own = new Set(document.leases.map(({ resource_id }) => resource_id))
  const dependents = plan.dependents.filter((id) => !own.has(id))
  const now = clock.now().getTime()
  const [held, coming, dependent, rivals, failing, current, frozen] = await Promise.all([
    listBlockers(db, document.leases),
    listComing(db, document.leases, running),
    listBlockers(
      db,
      dependents.map((resource_id) => ({ resource_id, mode: 'exclusive' as const })),
    ),
    listRivalPlans(db, intent_id, pluck(document.catalog_pins, 'resource_id'), visibleSql(viewer, intents)),
    listFailingAlike(
      db,
      intent_id,
      visibleSql(viewer, { requester_id: sql`a.requester_id`, resource_ids: sql`a.resource_ids` }),
    ),
    libraryNow(db, library),
    running === undefined ? frozenAtStart('gates' in document ? document.gates : []) : listFreezesNow(db, running, now),
  ])
  const isOther = ({ operation_id }: Blocker) => operation_id !== running
  const [holders, waiting, seen, resources] = await Promise.all([
    holdersFor(db, viewer, held.filter(isOther)),
    comingFor(db, viewer, coming),
    seenOperations(db, viewer, pluck(dependent, 'operation_id')),
    seenResources(db, viewer, pluck(dependent, 'resource_id')),
  ])
  const obstacles = [
    ...failing.map(failedAlike),
    ...holders,
    ...waiting,
    ...dependent.filter(isOther).map(({ operation_id, ...holder }) => {
      const title = seen.has(operation_id) ? holder.title : null
      const resource_id = resources.has(holder.resource_id) ? holder.resource_id : null
      const who = title === null ? 'Another operation' : `"${title}"`
      const changes = resource_id === null ? 'a resource that depends' : `${resource_id}, which depends`
      const message = `${who} is changing ${changes} on a target.`
      return { kind: 'dependent', id: title === null ? '' : operation_id, resource_id, title, message }
    }),
    ...closedWindows(library, document, now),
    ...freezesOf(current, frozen),
    ...rivals.map(({ plan_id, title, seen }) => ({
      kind: 'plan',
      id: seen ? plan_id : '',
      resource_id: null,
      title: seen ? title : null,
      message: `${seen ? `The plan of "${title}"` : 'Another plan'} is ready and changes some of the same resources.`,
    })),
  ]
  // Several that may not be told apart are one.
  return [...new Map(obstacles.map((one) => [`${one.id} ${one.message}`, one])).values()]
}

const ERROR_SHOWN = 200

const failedAlike = ({ operation_id, title, resource_id, name, ...failed }: Failing): Conflicts[number] => {
  const error = failed.error.slice(0, ERROR_SHOWN)
  const message = `The same change failed on ${resource_id ?? name} in "${title}": ${error}`
  return { kind: 'failed', id: operation_id, resource_id, title, message, error }
}

/** Returns the windows to which the plan's nodes are restricted, while none of them is open. */
const closedWindows = (
  { windows }: OperationsDeps['library'],
  { windows: ids, constraints }: Reach['document'],
  now: number,
): Conflicts => {
  const named = windows.filter(({ window_id }) => ids.includes(window_id))
  const asked = named.filter(({ window_id }) => window_id === constraints.window_id)
  const closed = nextOpening(asked, now) > now ? asked : nextOpening(named, now) > now ? named : []
  return closed.map((window) => {
    const opens_at = nextOpening([window], now)
    const when = Number.isFinite(opens_at) ? `opens at ${new Date(opens_at).toISOString()}` : 'does not open'
    return {
      kind: 'window',
      id: window.window_id,
      resource_id: null,
      title: null,
      message: `The window ${window.window_id} ${when}.`,
    }
  })
}

/** Returns freezes that overlap the expected run of the plan; each has its gate. */
const frozenAtStart = (gates: Plan['document']['gates']): { freeze_id: string }[] =>
  gates.filter(({ kind }) => kind === 'freeze').map(({ policy }) => ({ freeze_id: policy.key }))

const freezesOf = ({ freezes }: OperationsDeps['library'], frozen: readonly { freeze_id: string }[]): Conflicts =>
  freezes
    .filter(({ freeze_id }) => frozen.some((freeze) => freeze.freeze_id === freeze_id))
    .map(({ freeze_id, title, from, to }) => ({
      kind: 'freeze',
      id: freeze_id,
      resource_id: null,
      title,
      message: `${title}: frozen from ${from} to ${to}.`,
    }))
