import type { Queryable } from '../../../db/client.ts'
import { appendAudit } from '../../../db/operations/facts/state.ts'
import {
  countOnResources,
  freezeEndedAt,
  getFreeze,
  listStarting,
  lockCalendar,
  type PutFreeze,
  putFreeze,
  withdrawFreeze,
} from '../../../db/operations/plans/calendar.ts'
import type { FreezeEntry } from '../../../db/operations/tables/index.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { missingWords } from '../../shared/auth/permissions.ts'
import { isGranted } from '../../shared/auth/scope.ts'
import type { FreezeCreation, FreezeItem } from '../../shared/contracts/operations/calendar.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { AppError, notFound, wrongAt } from '../../shared/errors.ts'
import { compileCel } from '../../shared/expressions/cel.ts'
import { within as inTime } from '../../shared/sleep.ts'
import { type Mutation, mutate } from '../command/mutate.ts'
import type { FreezeDeps, Uses } from '../deps.ts'
import { askCovers } from '../planner/gates.ts'
import { allowedAction, scopesFor, throwIfRefused } from '../policies/authority.ts'
import { loadAllTargets } from '../targets/resolve.ts'
import { audited, isByPerson, makerOf, refuseOfFile, refuseUnusable, tell, tellUntold, viewOf } from './freezes.ts'

/**
 * Creates a person's freeze. It holds nodes as a control plane's freeze does (operations.md 9.3), but always only where
 * that person may control operations.
 */
export const createFreeze = async (
  deps: FreezeDeps & Uses<'trust'>,
  mutation: Mutation,
  trace: string | null,
  given: FreezeCreation,
) => {
  const { freeze_id, dry_run: _, ...rest } = given
  const within = scopesFor(mutation.caller, 'operation:control')
  const entry = { ...rest, ...(within && { within }) }
  const now = deps.clock.now().getTime()
  const made: { freeze?: PutFreeze } = {}
  const refusal = (await refuseApprovers(deps, entry.approvers)) ?? (await refuseEnders(deps, entry))
  const answer = await mutate(deps, mutation, async (tx) => {
    refuseOfFile(deps, freeze_id)
    refuseUnusable(entry, now)
    if (refusal) throw refusal
    const covered = mutation.dry_run ? await coveredBy(tx, entry) : undefined
    if (!mutation.dry_run) await lockCalendar(tx, 'to write')
    if (await getFreeze(tx, freeze_id))
      throw new AppError('version_conflict', 'already_exists', `The freeze "${freeze_id}" already exists.`)
    const keep = async () => {
      const { freeze } = await putFreeze(tx, freeze_id, entry, makerOf(mutation.actor))
      await appendAudit(tx, deps.keys.audit, audited(mutation, 'freeze.put', freeze_id, null, entry))
      made.freeze = freeze
      return { status: 201, body: itemOf(mutation.caller, freeze, now) }
    }
    const effect = mutation.dry_run
      ? {
          targets: covered?.length ?? null,
          operations: covered && (await countStopped(tx, covered)),
          may_end: await endersOf(deps, entry),
        }
      : {}
    return { effect, keep }
  })
  await tellOf(deps, mutation, trace, made.freeze)
  return answer
}

/** Ends a freeze that a person made, now or `at` a time before its end; the nodes that it held continue automatically. */
export const endFreeze = async (
  deps: FreezeDeps,
  mutation: Mutation,
  trace: string | null,
  freeze_id: string,
  at?: string,
) => {
  const ended: { freeze?: PutFreeze | undefined } = {}
  const answer = await mutate(deps, mutation, async (tx) => {
    if (!mutation.dry_run) await lockCalendar(tx, 'to write')
    const freeze = await getFreeze(tx, freeze_id)
    if (!freeze && deps.library.freezes.every((one) => one.freeze_id !== freeze_id)) {
      const ended_at = await freezeEndedAt(tx, freeze_id)
      if (!ended_at) throw notFound('freeze', freeze_id)
      throw new AppError('invalid_state_transition', 'freeze_ended', `The freeze was ended at ${ended_at}.`)
    }
    throwIfRefused(refuseEnd(mutation.caller, freeze))
    const shorter = freeze && at !== undefined ? shortened(freeze, at, deps.clock.now().getTime()) : undefined
    const keep = async () => {
      const before = freeze && viewOf(freeze)
      if (freeze && shorter) {
        ended.freeze = (await putFreeze(tx, freeze_id, shorter, freeze.put_by)).freeze
        const after = viewOf(ended.freeze)
        await appendAudit(tx, deps.keys.audit, audited(mutation, 'freeze.put', freeze_id, before, after))
        return { status: 200, body: { freeze_id } }
      }
      ended.freeze = await withdrawFreeze(tx, freeze_id)
      await appendAudit(tx, deps.keys.audit, audited(mutation, 'freeze.withdraw', freeze_id, before, null))
      return { status: 200, body: { freeze_id } }
    }
    return { effect: {}, keep }
  })
  await tellOf(deps, mutation, trace, ended.freeze)
  return answer
}

/** The same freeze with an earlier end; it reaches no further, so operations that overrode it stay free of it. */
const shortened = (
  { freeze_id: _, put_by: _by, updated_at: _at, revision: _revision, ...entry }: PutFreeze,
  at: string,
  now: number,
): FreezeEntry => {
  const time = Date.parse(at)
  const wrong = (message: string) =>
    wrongAt('/at', message, { code: 'parameters_invalid', status: 422, detail: `The freeze cannot end at ${at}.` })
  if (time >= Date.parse(entry.to)) throw wrong(`must be earlier than its end, ${entry.to}`)
  if (time <= Math.max(now, Date.parse(entry.from))) throw wrong('must be later than now and than its beginning')
  return { ...entry, to: new Date(time).toISOString(), shortened: true }
}

/** Tells running operations before the answer; a repeat, whose first request may have died before, tells the rest. */
const tellOf = async (
  deps: FreezeDeps,
  mutation: Mutation,
  trace: string | null,
  freeze: PutFreeze | undefined,
): Promise<void> => {
  if (mutation.dry_run) return
  if (freeze) await tell(deps, freeze, { ...mutation, trace })
  else await tellUntold(deps, 0)
}

/** Returns a freeze as the calendar shows it to this person; one from a file has no maker. */
export const itemOf = (
  caller: Caller,
  freeze: Omit<PutFreeze, 'put_by' | 'updated_at' | 'revision'> & { put_by?: string },
  now: number,
): FreezeItem => {
  const { freeze_id, title, applies, from, to, approvers, within = null, put_by } = freeze
  const refusal = refuseEnd(caller, put_by === undefined ? undefined : { put_by, approvers, within })
  return {
    ...{ freeze_id, title, applies, from, to, approvers, within },
    in_force: Date.parse(from) <= now,
    put_by: put_by ?? null,
    allowed_actions: [allowedAction('end', refusal)],
  }
}

/** Whether this person may decide wherever the freeze may hold: everywhere, or in the scopes of its maker. */
const decidesOn = (person: Pick<Caller, 'grants'>, within: FreezeEntry['within'] | null): boolean =>
  (within ?? [{}]).every((place) => isGranted(person.grants, 'gate:decide', place))

/** Whoever may override a freeze for every operation may end it. A freeze that no person made is ended at its source. */
const refuseEnd = (
  caller: Caller,
  freeze: (Pick<PutFreeze, 'put_by' | 'approvers'> & { within?: FreezeEntry['within'] | null }) | undefined,
) => {
  const refuse = (code: RefusalCode['code'], detail: string, extra = {}): RefusalCode => ({
    ...{ category: 'policy_denied', code, detail, extra },
  })
  if (!caller.permissions.has('gate:decide'))
    return refuse('permission_missing', missingWords(['gate:decide']), { permission: 'gate:decide' })
  if (freeze === undefined) return refuse('freeze_elsewhere', 'The freeze is in a calendar file of this deployment.')
  if (!isByPerson(freeze))
    return refuse('freeze_elsewhere', `Only ${freeze.put_by}, which created the freeze, can end it.`)
  if (!freeze.approvers.some((group) => caller.groups.includes(group)))
    return refuse(
      'not_eligible',
      `Only members of ${freeze.approvers.join(', ')} may end it; an administrator can add some.`,
    )
  if (decidesOn(caller, freeze.within)) return undefined
  return refuse('out_of_scope', 'Your roles do not cover every place where the freeze may hold.')
}

/** Returns the targets that the freeze covers now; `undefined` if there are too many to ask. */
const coveredBy = async (db: Queryable, { applies, within }: FreezeEntry): Promise<string[] | undefined> => {
  const all = await loadAllTargets(db)
  const condition = { applies: compileCel(applies, ['target']), ...(within && { within }) }
  const covers = await askCovers([condition], all ?? [])
  return all?.filter((target) => covers(condition, target)).map(({ resource_id }) => resource_id)
}

/** A freeze stops: it does not wait for an identity that is away. */
const PATIENCE_MS = 1000
const soon = <T>(work: Promise<T>, otherwise: T): Promise<T> =>
  inTime(work, PATIENCE_MS, () => new Error('identity is late')).catch(() => otherwise)

/** Nobody could end or override the freeze of a mistyped group. */
const refuseApprovers = async ({ trust }: Uses<'trust'>, groups: readonly string[]): Promise<AppError | undefined> => {
  const known = await Promise.all(groups.map((group) => soon(trust.hasMembers(group), true)))
  const wrong = known.indexOf(false)
  if (wrong < 0) return undefined
  return wrongAt(`/approvers/${wrong}`, 'names a group without an active member', {
    code: 'unknown_reference',
    detail: `No active account is in a group "${groups[wrong]}".`,
    hint: 'Check the key of the group, or add its first member.',
    status: 422,
  })
}

/** Each approver's roles may cover only a part of where the freeze may hold. Rights given a moment ago count. */
const refuseEnders = async (deps: Uses<'trust'>, entry: FreezeEntry): Promise<AppError | undefined> => {
  deps.trust.approvers.drop()
  if ((await endersOf(deps, entry))?.length !== 0) return undefined
  return wrongAt('/approvers', 'names nobody who may decide wherever the freeze may hold', {
    code: 'unknown_reference',
    hint: 'Add a group whose members may decide there, or let someone create it whose role is limited to the same place.',
    status: 422,
  })
}

/** The names of those who may end such a freeze; null while they are not known. */
const endersOf = async (
  { trust }: Uses<'trust'>,
  { approvers, within }: Pick<FreezeEntry, 'approvers' | 'within'>,
): Promise<string[] | null> => {
  const all = await soon(trust.approvers.listAll(), undefined)
  const members = all?.filter(({ group_keys }) => approvers.some((group) => group_keys.includes(group)))
  return (
    members
      ?.filter((one) => decidesOn(one, within))
      .map(({ user }) => user.username)
      .sort() ?? null
  )
}

const countStopped = async (db: Queryable, resource_ids: readonly string[]): Promise<number> =>
  countOnResources(db, await listStarting(db), resource_ids)
