import { eq } from 'drizzle-orm'
import type { Tx } from '../../../db/client.ts'
import { appendAudit } from '../../../db/operations/facts/state.ts'
import {
  getFreeze,
  listStarting,
  listUntold,
  lockCalendar,
  markTold,
  type PutFreeze,
  putFreeze,
  withdrawFreeze,
} from '../../../db/operations/plans/calendar.ts'
import { type FreezeEntry, operations } from '../../../db/operations/tables/index.ts'
import type { Actor } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import { wrongAt } from '../../shared/errors.ts'
import { CelError, compileCondition } from '../../shared/expressions/cel.ts'
import { uuidv5 } from '../../shared/ids.ts'
import { type Command, ownCommand } from '../command/command.ts'
import { acceptUnlessEnded } from '../command/run.ts'
import type { FreezeDeps, Uses } from '../deps.ts'
import { calendarSteps, lookAtCalendar } from './change.ts'

/** Who changes the calendar, and with which request. */
export type Changer = { actor: Actor; request_id: string; trace: string | null }
export const serviceChanger = (service: string, request_id: string, trace: string | null): Changer => ({
  actor: { kind: 'service', id: `svc:${service}`, name: service },
  ...{ request_id, trace },
})

/** The prefix with which a freeze names the person who made it; any other maker is a control plane. */
const PERSON = 'user:'
export const makerOf = ({ kind, name }: Actor): string => (kind === 'user' ? `${PERSON}${name}` : name)
export const isByPerson = ({ put_by }: Pick<PutFreeze, 'put_by'>): boolean => put_by.startsWith(PERSON)

/** How long the maker of a change has to tell running operations before another process does it. */
const TELL_WITHIN_S = 10
const TELLING = 4

/**
 * Puts a freeze (operations.md 9.3): once this returns, no node that it covers starts, in new or running operations.
 * Putting the same freeze again has no effect. Refuses an id that a calendar file of the deployment uses.
 */
export const putOneFreeze = async (deps: FreezeDeps, freeze_id: string, entry: FreezeEntry, by: Changer) => {
  refuseOfFile(deps, freeze_id)
  refuseUnusable(entry)
  const made = await deps.db.transaction(async (tx) => {
    await lockCalendar(tx, 'to write')
    await refuseOfPerson(tx, freeze_id)
    const change = await putFreeze(tx, freeze_id, entry, makerOf(by.actor))
    if (change.changed)
      await appendAudit(tx, deps.keys.audit, audited(by, 'freeze.put', freeze_id, change.before, entry))
    return change
  })
  return { ...viewOf(made.freeze), changed: made.changed, operations: await tell(deps, made.freeze, by) }
}

/** Withdraws a freeze: the nodes that it held resume. A missing freeze is no error. */
export const withdrawOneFreeze = async (deps: FreezeDeps, freeze_id: string, by: Changer) => {
  refuseOfFile(deps, freeze_id)
  const gone = await deps.db.transaction(async (tx) => {
    await lockCalendar(tx, 'to write')
    await refuseOfPerson(tx, freeze_id)
    const freeze = await withdrawFreeze(tx, freeze_id)
    if (freeze) await appendAudit(tx, deps.keys.audit, audited(by, 'freeze.withdraw', freeze_id, viewOf(freeze), null))
    return freeze
  })
  return { freeze_id, withdrawn: gone !== undefined, operations: gone ? await tell(deps, gone, by) : 0 }
}

/** Tells running operations about changes whose makers died before telling all. */
export const tellUntold = async (deps: FreezeDeps, older_than_s = TELL_WITHIN_S): Promise<number> => {
  const untold = await listUntold(deps.db, older_than_s)
  for (const freeze of untold)
    await tell(
      deps,
      freeze,
      serviceChanger(isByPerson(freeze) ? 'operations' : freeze.put_by, `freeze:${freeze.freeze_id}`, null),
    )
  return untold.length
}

/** Tells each operation in a separate transaction, once per change; returns how many operations it affected. */
export const tell = async (
  deps: FreezeDeps,
  { freeze_id, revision, shortened }: Pick<PutFreeze, 'freeze_id' | 'revision'> & { shortened?: boolean },
  by: Changer,
): Promise<number> => {
  const ids = await listStarting(deps.db)
  let told = 0
  const next = async (): Promise<void> => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop())
      if (await tellOne(deps, id, shortened ? [] : [freeze_id], commandOf(id, freeze_id, revision, by))) told += 1
  }
  await Promise.all(Array.from({ length: TELLING }, next))
  await markTold(deps.db, freeze_id, revision)
  return told
}

const tellOne = async (deps: FreezeDeps, operation_id: string, renewed: readonly string[], command: Command) => {
  const [row] = await deps.db
    .select({ resource_ids: operations.resource_ids, constraints: operations.constraints })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  const { changed } = await lookAtCalendar(
    deps.db,
    deps,
    { operation_id, resource_ids: row?.resource_ids ?? [], constraints: row?.constraints ?? {} },
    renewed,
  )
  return changed && acceptUnlessEnded(deps, command, calendarSteps(deps, command, renewed))
}

const commandOf = (operation_id: string, freeze_id: string, revision: number, by: Changer): Command => {
  const command_id = uuidv5(operation_id, `freeze ${freeze_id} ${revision}`)
  const route = '/internal/v1/freezes/:freeze_id'
  return ownCommand({
    ...{ kind: 'calendar_changed', class: 'edit', operation_id, command_id, ...by },
    instance: `/internal/v1/freezes/${freeze_id}`,
    // The same for all who tell: the maker and the sweep may do so at one moment, and one of them takes effect.
    request: { caller: 'operations', route, key: command_id, fingerprint: [Buffer.from(command_id)] },
  })
}

export const viewOf = ({ within, ...freeze }: PutFreeze) => ({
  ...pick(freeze, 'freeze_id', 'title', 'applies', 'from', 'to', 'approvers', 'put_by', 'updated_at'),
  ...(within && { within }),
})

export const audited = (
  by: Pick<Changer, 'actor' | 'request_id'>,
  action: string,
  freeze_id: string,
  before: unknown,
  after: unknown,
) => ({
  actor: by.actor.kind === 'user' ? `user:${by.actor.id}` : by.actor.id,
  roles: by.actor.roles ?? [],
  action,
  object: `freeze:${freeze_id}`,
  outcome: 'done' as const,
  reason: null,
  before,
  after,
  request_id: by.request_id,
})

const unusable = (pointer: string, code: 'parameters_invalid' | 'expression_error', message: string) =>
  wrongAt(pointer, message, { code, status: 422, detail: `The freeze is not valid: ${pointer} ${message}.` })

export const refuseOfFile = ({ library }: Uses<'library'>, freeze_id: string): void => {
  if (library.freezes.some((freeze) => freeze.freeze_id === freeze_id))
    throw unusable('/freeze_id', 'parameters_invalid', "names a freeze from this deployment's calendar files")
}

const refuseOfPerson = async (tx: Tx, freeze_id: string): Promise<void> => {
  const known = await getFreeze(tx, freeze_id)
  if (known && isByPerson(known))
    throw unusable('/freeze_id', 'parameters_invalid', 'names a freeze that a person made; take another id')
}

/** Refuses an invalid condition, and an end before the beginning or before `now`. */
export const refuseUnusable = ({ applies, from, to }: FreezeEntry, now = Number.NEGATIVE_INFINITY): void => {
  if (Date.parse(to) <= Date.parse(from)) throw unusable('/to', 'parameters_invalid', 'must be later than "from"')
  if (Date.parse(to) <= now) throw unusable('/to', 'parameters_invalid', 'has passed; it must be in the future')
  try {
    compileCondition(applies, ['target'])
  } catch (error) {
    if (error instanceof CelError) throw unusable('/applies', 'expression_error', error.message)
    throw error
  }
}
