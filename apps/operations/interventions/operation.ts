import { eq, sql } from 'drizzle-orm'
import type { Tx } from '../../../db/client.ts'
import { getGate, swapGate } from '../../../db/operations/gates/rows.ts'
import { releaseLeases, setLeaseState } from '../../../db/operations/leases/rows.ts'
import { operation_control } from '../../../db/operations/tables/index.ts'
import { refuseGateApprove } from '../../../workflows/operation/rules/gates.ts'
import { refuseOperationIntervention } from '../../../workflows/operation/rules/nodes.ts'
import type { OperationIntervention } from '../../shared/contracts/operations/graph.ts'
import { freezeEnds, isFrozen } from '../../shared/data/calendar.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound, wrongAt } from '../../shared/errors.ts'
import { refuseOn } from '../operations/control.ts'
import { refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import { delegationsOf, externalOnly, gateFacts, gateObject, mayByGroup } from '../policies/footing.ts'
import { type Act, EXTEND, message, notApplicable, type Payload } from './extend.ts'
import type { Intervened, Intervening, InterventionDeps } from './types.ts'

/** An intervention on the operation as a whole, or on a part of it that the payload names. */
export const interveneOnOperation = async (
  deps: InterventionDeps,
  tx: Tx,
  intervening: Intervening,
  { type, payload }: { type: OperationIntervention; payload: Payload },
): Promise<Intervened> => {
  const { command, subject } = intervening
  await refuseOn(deps, tx, command, subject, refuseOperationIntervention(subject.facts, type))
  return ACTS[type](deps, tx, intervening, payload)
}

const ACTS: Record<OperationIntervention, Act> = {
  set_limits: async (_deps, _tx, { subject }, { max_parallel = 1 }) => ({
    payload: message('set_limits', { payload: { max_parallel } }),
    set: { max_parallel },
    undo: { max_parallel: subject.max_parallel },
    statement: `set_limits: at most ${max_parallel} nodes at a time instead of ${subject.max_parallel}`,
    data: { max_parallel },
    effect: { max_parallel, before: subject.max_parallel },
    before: { max_parallel: subject.max_parallel },
  }),

  extend_deadline: (deps, tx, intervening, payload) =>
    EXTEND[payload.of ?? 'operation'](deps, tx, intervening, payload),

  // Resume takes the leases again and checks the pins (control.ts). No claim is granted in between.
  release_leases: async (_deps, tx, { subject: { operation_id } }) => {
    const released = await releaseLeases(tx, operation_id)
    if (released.length === 0) throw notApplicable('The operation holds no leases.')
    await setLeaseState(tx, operation_id, 'given_back')
    return {
      payload: null,
      events: [{ type: 'lease.released', data: { resources: released } }],
      overrides: { resources: released },
      statement: `release_leases; resources: ${released.length}`,
      data: { resources: released },
      effect: { resources: released },
      before: { resources: released },
    }
  },

  /** The freeze no longer holds this operation. Only its approvers may do this. */
  override_freeze: async (_deps, tx, { command, subject, command_id, groups }, { freeze_id = '' }) => {
    const { operation_id, now } = subject
    const own = eq(operation_control.operation_id, operation_id)
    const [control] = await tx.select({ calendar: operation_control.calendar }).from(operation_control).where(own)
    const freeze = control?.calendar?.freezes[freeze_id]
    if (!freeze || !isFrozen(freeze, Date.parse(now)))
      throw notApplicable(`No freeze "${freeze_id}" holds this operation now.`)
    const { approvers } = freeze
    const { [freeze_id]: _, ...freezes } = freezeEnds(control?.calendar ?? null)
    if (approvers.length > 0 && !approvers.some((group) => groups.includes(group)))
      throw new AppError(
        'policy_denied',
        'not_eligible',
        `Only members of ${approvers.join(', ')} can override this freeze.`,
      )
    await tx
      .update(operation_control)
      .set({ calendar: sql`${operation_control.calendar} #- array['freezes', ${freeze_id}]` })
      .where(own)
    const exception = { kind: 'override_freeze', freeze_id, actor: command.actor, at: now, command_id }
    return {
      payload: message('override_freeze', {}),
      events: [{ type: 'freeze.overridden', data: { freeze_id, until: freeze.to } }],
      set: { exceptions: [...subject.exceptions, exception] },
      exception: true,
      freezes,
      overrides: { freeze: pick(freeze, 'from', 'to', 'approvers') },
      statement: `override_freeze: ${freeze_id}, which lasts until ${freeze.to}`,
      data: { freeze_id },
      effect: { freeze_id, until: freeze.to },
      before: { freeze },
    }
  },

  /** One more person may vote like a member of the gate's groups; permission, scope and four eyes still apply. */
  delegate_gate: async (deps, tx, { command, subject, agreed }, { gate_id = '', to_user = '', until = '' }) => {
    const { operation_id, now } = subject
    const row = await getGate(tx, operation_id, gate_id)
    if (!row) throw notFound('gate', gate_id)
    const object = gateObject(row, subject.places)
    // Only an own right can be delegated.
    if (!agreed) throwIfRefused(refuseByPolicy(deps, command.caller, 'gate.approve', object, subject.places))
    throwIfRefused(externalOnly(row.gate.kind))
    const facts = gateFacts(row)
    throwIfRefused(refuseGateApprove(subject.facts, facts, { round: facts.round, user_id: command.caller.user_id }))
    const person = (await deps.trust.approvers.list()).find(({ user }) => user.id === to_user)
    if (!person) throw unknown('/payload/to_user', 'is not a person who may decide gates')
    if (to_user === command.actor.id) throw unknown('/payload/to_user', 'is the person who delegates')
    if (mayByGroup(row.gate, person.group_keys))
      throw unknown('/payload/to_user', 'needs no delegation: the groups of this gate do not exclude this person')
    if (Date.parse(until) <= Date.parse(now)) throw unknown('/payload/until', 'must be in the future')
    const [held] = delegationsOf(row.gate, to_user, now)
    if (held && held.by.id !== command.actor.id)
      throw unknown('/payload/to_user', `decides this gate in the place of ${held.by.name} until ${held.until}`)
    const delegation = { user_id: to_user, name: person.user.username, by: command.actor, until }
    const others = row.gate.delegations.filter(({ user_id }) => user_id !== to_user)
    const from = { status: row.gate.status, round: row.gate.round }
    const delegations = [...others, delegation]
    if (!(await swapGate(tx, { operation_id, gate_id, from, set: { delegations } })))
      throw new AppError('gate_not_waiting', 'already_decided', 'The gate was decided a moment ago.')
    return {
      payload: null,
      gate_id,
      overrides: { gate: pick(row.gate, 'status', 'round', 'digest') },
      statement: `delegate_gate: ${person.user.username} may decide gate ${gate_id} until ${until}`,
      data: { to_user, until },
      effect: { gate_id, to_user, until },
      before: { delegations: row.gate.delegations },
    }
  },
}

const unknown = (pointer: string, words: string) =>
  wrongAt(pointer, words, {
    code: 'parameters_invalid',
    as: 'invalid',
    detail: `The intervention is not valid: ${pointer} ${words}.`,
  })
