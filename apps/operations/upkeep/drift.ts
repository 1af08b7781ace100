import { SYSTEM } from '../../../db/operations/facts/state.ts'
import { RESOURCE_WINDOW, readChangeMark } from '../../../db/operations/history/tail.ts'
import {
  type Drifting,
  listChangedSince,
  listFollowing,
  markLooked,
  repin,
} from '../../../db/operations/leases/drift.ts'
import { uuidv5 } from '../../shared/ids.ts'
import { calendarSteps, lookAtCalendar } from '../calendar/change.ts'
import { type Command, ownCommand } from '../command/command.ts'
import { acceptUnlessEnded } from '../command/run.ts'
import type { AcceptDeps, PlanningDeps, PolicyDeps } from '../deps.ts'
import { driftSteps } from '../operations/control.ts'
import { driftOf } from '../operations/drift.ts'

type Deps = AcceptDeps & PlanningDeps & PolicyDeps

/**
 * Checks running operations when the projection of the catalog has moved (operations.md 3.4). An operation whose nodes
 * would act differently pauses. A version that moves without a value is pinned again, and nobody is asked. Each call
 * checks the changes since the previous call; the first checks all. What fails for one operation is reported, and all
 * are looked at again. Returns how many operations it paused.
 */
export const createDriftWatch = (deps: Deps) => {
  let seen = 0
  let seen_mark = 0
  return async (cannot: (error: unknown) => void = rethrow): Promise<number> => {
    const mark = await readChangeMark(deps.db)
    if (mark === seen_mark) return 0
    const changed = await listChangedSince(deps.db, seen === 0 ? 0 : Math.max(seen - RESOURCE_WINDOW, 1))
    let paused = 0
    let whole = true
    const failed = (error: unknown) => {
      whole = false
      cannot(error)
    }
    for (const running of await listFollowing(deps.db, seen === 0 ? undefined : changed.resource_ids))
      if (await look(deps, running).catch(failed)) paused += 1
    if (whole) {
      seen = changed.last
      seen_mark = mark
    }
    return paused
  }
}

export const rethrow = (error: unknown): never => {
  throw error
}

const look = async (deps: Deps, running: Drifting): Promise<boolean> => {
  const { operation_id, pins, looked, constraints, control } = running
  const { drifted, pins: fresh } = await driftOf(deps.db, deps, running)
  await followCalendar(deps, running, { ...pins, ...fresh })
  const ids = new Set(drifted.map(({ resource_id }) => resource_id))
  const silent = Object.entries(fresh).filter(([id]) => !ids.has(id) || constraints.on_drift === 'ignore')
  if (silent.length > 0) await repin(deps.db, operation_id, pins, Object.fromEntries(silent))
  const news = Object.entries(fresh).filter(([id, version]) => ids.has(id) && (looked[id] ?? 0) < version)
  if (news.length === 0 || constraints.on_drift === 'ignore') return false
  // A pause for another reason remains; the person who resumes is told.
  const paused = control === 'run' && (await pauseFor(deps, operation_id, news))
  await markLooked(deps.db, operation_id, Object.fromEntries(news))
  return paused
}

/** A target that moves may come under a freeze or a window, or leave it; claims use the calendar of the operation. */
const followCalendar = async (deps: Deps, running: Drifting, pins: Record<string, number>): Promise<void> => {
  const { operation_id } = running
  if (!(await lookAtCalendar(deps.db, deps, running, [])).changed) return
  const command = commandOf('calendar_changed', operation_id, `calendar ${JSON.stringify(pins)}`)
  await acceptUnlessEnded(deps, command, calendarSteps(deps, command))
}

const pauseFor = async (deps: Deps, operation_id: string, news: [string, number][]): Promise<boolean> => {
  const command = commandOf('catalog_drift', operation_id, `drift ${JSON.stringify(news)}`)
  const resource_ids = news.map(([id]) => id)
  return acceptUnlessEnded(deps, command, driftSteps(deps, command, resource_ids))
}

const commandOf = (kind: 'catalog_drift' | 'calendar_changed', operation_id: string, name: string): Command => {
  const command_id = uuidv5(operation_id, name)
  const is_stop = kind === 'catalog_drift'
  return ownCommand({
    ...{ kind, class: is_stop ? 'stop' : 'edit', operation_id, command_id, actor: SYSTEM, request_id: command_id },
    instance: '/drift',
    request: { caller: SYSTEM.id, route: 'drift', key: command_id, fingerprint: [Buffer.from(command_id)] },
  })
}
