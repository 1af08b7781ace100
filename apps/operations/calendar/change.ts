import { eq } from 'drizzle-orm'
import { type Queryable, updateRows } from '../../../db/client.ts'
import { operation_control } from '../../../db/operations/tables/index.ts'
import { refuseEnded } from '../../../workflows/operation/rules/control.ts'
import { type FrozenSpan, freezeEnds, type OperationCalendar } from '../../shared/data/calendar.ts'
import { digest } from '../../shared/data/digest.ts'
import type { Command, Steps, Subject } from '../command/command.ts'
import type { PolicyDeps, Uses } from '../deps.ts'
import { onOperation, refuseOn, said } from '../operations/control.ts'
import { calendarOf } from '../targets/calendar.ts'

/**
 * A running operation follows the calendar (operations.md 3.5): the current windows and freezes of its targets replace
 * its earlier ones. They hold or release its next claims; running nodes continue. An overridden freeze stays
 * overridden, unless it is `renewed` with other content. A freeze that now reaches further than the one approved at a
 * gate holds the operation again.
 */
export const calendarSteps = (
  deps: PolicyDeps & Uses<'config' | 'db' | 'library'>,
  command: Command,
  renewed: readonly string[] = [],
): Steps<Subject> =>
  onOperation(deps, command, 'operation.intervene', async (tx, subject, command_id) => {
    await refuseOn(deps, tx, command, subject, refuseEnded(subject.facts))
    const { next, held, lifted, changed } = await lookAtCalendar(tx, deps, subject, renewed)
    const effect = { freezes_held: held, freezes_lifted: lifted }
    if (!changed) return { payload: null, events: [], effect }
    await updateRows(tx, { operation_id: subject.operation_id }, operation_control, { calendar: next })
    const words = [
      ...held.map((id) => `the freeze ${id} now holds it`),
      ...lifted.map((id) => `the freeze ${id} no longer holds it`),
    ]
    const statement = `The calendar of the operation changed: ${words.join(', ') || 'other windows'}`
    return {
      payload: { entry_ids: [...held, ...lifted] },
      events: [said(command, command_id, 'calendar.changed', statement, effect, { freezes: freezeEnds(next) })],
      effect,
    }
  })

type Looked = {
  next: OperationCalendar | null
  /** Freezes that are new to the operation or have other times. */
  held: string[]
  lifted: string[]
  /** Whether that makes a difference to any claim. */
  changed: boolean
}
type Followed = { operation_id: string; resource_ids: string[]; constraints: Record<string, unknown> }

/** Compares the current calendar of an operation with the one that its claims use. */
export const lookAtCalendar = async (
  db: Queryable,
  deps: Uses<'clock' | 'library'>,
  { operation_id, resource_ids, constraints }: Followed,
  renewed: readonly string[],
): Promise<Looked> => {
  const now = deps.clock.now().getTime()
  const [row] = await db
    .select({ calendar: operation_control.calendar })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
  const known = row?.calendar ?? null
  const made = await calendarOf(db, deps, { resource_ids, window_id: constraints.window_id }, now)
  const next = made && regaining(withoutOverridden(made, known, renewed), known)
  const [before, after] = [inForce(known, now), inForce(next, now)]
  return {
    next,
    held: idsOf(after).filter((id) => digest(after.freezes[id]) !== digest(before.freezes[id] ?? null)),
    lifted: idsOf(before).filter((id) => after.freezes[id] === undefined),
    changed: digest(before) !== digest(after),
  }
}

const idsOf = ({ freezes }: Pick<OperationCalendar, 'freezes'>): string[] => Object.keys(freezes).sort()

/** A freeze that the targets name but the operation's calendar lacks has been overridden. */
const withoutOverridden = (
  made: OperationCalendar,
  known: OperationCalendar | null,
  renewed: readonly string[],
): OperationCalendar => {
  const named = new Set(Object.values(known?.targets ?? {}).flatMap(({ freezes }) => freezes))
  const overridden = (id: string) => named.has(id) && known?.freezes[id] === undefined && !renewed.includes(id)
  return { ...made, freezes: Object.fromEntries(Object.entries(made.freezes).filter(([id]) => !overridden(id))) }
}

const regaining = (made: OperationCalendar, known: OperationCalendar | null): OperationCalendar => ({
  ...made,
  freezes: Object.fromEntries(
    Object.entries(made.freezes).map(([id, freeze]) => {
      const before = known?.freezes[id]
      const within = before && !before.regained && reachesNoFurther(freeze, before)
      return [id, within ? freeze : { ...freeze, regained: true }]
    }),
  ),
})

const reachesNoFurther = (freeze: FrozenSpan & { approvers: string[] }, before: typeof freeze): boolean =>
  Date.parse(freeze.from) >= Date.parse(before.from) &&
  Date.parse(freeze.to) <= Date.parse(before.to) &&
  digest(freeze.approvers) === digest(before.approvers)

/** Returns the part of a calendar that can hold a claim from now on. */
const inForce = (calendar: OperationCalendar | null, now: number) => {
  const { windows = {}, freezes = {}, asked = null, targets = {} } = calendar ?? {}
  const lasting = Object.fromEntries(Object.entries(freezes).filter(([, { to }]) => Date.parse(to) > now))
  const bound = Object.entries(targets).map(([id, target]) => [
    id,
    { windows: target.windows, freezes: target.freezes.filter((freeze_id) => lasting[freeze_id] !== undefined) },
  ])
  return {
    windows,
    asked,
    freezes: lasting,
    targets: Object.fromEntries(
      (bound as [string, { windows: string[]; freezes: string[] }][]).filter(
        ([, target]) => target.windows.length + target.freezes.length > 0,
      ),
    ),
  }
}
