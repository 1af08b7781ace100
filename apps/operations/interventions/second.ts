import type { Tx } from '../../../db/client.ts'
import { attempt } from '../../../db/command/attempt.ts'
import { commandOfGate, gateOfIntervention, getAwaiting, passAwaiting } from '../../../db/operations/gates/awaiting.ts'
import { waitingGates } from '../../../db/operations/gates/rows.ts'
import { gates } from '../../../db/operations/tables/index.ts'
import type { Actor, GateSubject } from '../../shared/contracts/operations/graph.ts'
import type { InterventionBody } from '../../shared/contracts/operations/nodes.ts'
import { digest } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { rulesOf } from '../../shared/evidence/rules.ts'
import type { Decision, Subject } from '../command/command.ts'
import { needsSecondPerson, onePerson } from '../policies/authority.ts'
import type { People } from '../policies/footing.ts'
import { decisionOf, perform } from './perform.ts'
import type { Intervened, Intervening, InterventionCommand, InterventionDeps } from './types.ts'

/** Types that need no second person, because they do not change the effect of the plan. */
const ALONE: ReadonlySet<InterventionBody['type']> = new Set(['extend_deadline', 'set_limits'])

/** Types that are complete in Postgres with the commit: they have no deadline, for no withdrawal could be true. */
const AT_ONCE: ReadonlySet<InterventionBody['type']> = new Set(['set_output', 'override_freeze'])

export const classOf = (type: InterventionBody['type']) => (AT_ONCE.has(type) ? 'edit' : 'start')

/** Whether another person has to agree to an intervention of this type. */
export const waitsForSecondPerson = (risk_level: string, type: InterventionBody['type']): boolean =>
  needsSecondPerson(risk_level) && !ALONE.has(type)

const POLICY = onePerson('intervention')

const authorOf = ({ id, name, behind }: Actor) => ({ id, name, ...(behind && { behind }) })

/** Opens a gate with the intervention as its subject. It is possible now, and done once another person approves it. */
export const askSecondPerson = async (
  deps: InterventionDeps,
  tx: Tx,
  intervening: Intervening,
  body: InterventionBody,
): Promise<Decision> => {
  const { command, command_id, subject } = intervening
  const { operation_id } = subject
  const { effect, before, overrides } = await attempt(tx, (inner) => perform(deps, inner, intervening, body))
  const { type, node_id, payload, ticket } = body
  const { id: author, behind } = command.actor
  const gate_id = gateOfIntervention(command_id)
  const asked: GateSubject = {
    v: 1,
    operation_id,
    gate_id,
    kind: 'intervention',
    policy: { key: POLICY.key, digest: POLICY.digest },
    releases: [],
    changes: [],
    bound_outputs: [],
    intervention: {
      type,
      node_id: node_id ?? null,
      payload: { ...payload, ...overrides },
      reason: command.reason,
      ticket: ticket ?? null,
      author: authorOf(command.actor),
    },
  }
  const now = digest(asked)
  await tx
    .insert(gates)
    .values({
      operation_id,
      gate_id,
      kind: 'intervention',
      question: `${command.actor.name} asks to ${type}${node_id === undefined ? '' : ` ${node_id}`}. Allow it?`,
      policy: POLICY,
      guards: [],
      status: 'waiting',
      subject: asked,
      digest: now,
      waiting_since: subject.now,
      deadline_at: new Date(Date.parse(subject.now) + POLICY.deadline_s * 1000).toISOString(),
    })
  return {
    payload: { ...body, overrides },
    awaits: true,
    events: [
      {
        type: 'gate.waiting',
        actor: command.actor,
        reason: command.reason,
        gate_id,
        command_id,
        data: { round: 1, digest: now, type, node_id: node_id ?? null },
        evidence: {
          kind: 'command',
          statement: `${command.actor.name} requested an intervention that a second person must approve: ${type}`,
          subject: {
            type: 'gate',
            id: gate_id,
            rules: [
              { ...rulesOf({ gate_id, kind: 'intervention', policy: POLICY }), author, ...(behind && { behind }) },
            ],
          },
          subject_digest: now,
        },
      },
    ],
    set: { open_gates: waitingGates(operation_id) },
    effect: { ...effect, status: 'awaiting_second_person' },
    object: `gate:${operation_id}/${gate_id}`,
    before,
  }
}

type Passing = { subject: Subject; approving: InterventionCommand; gate_id: string; people: People }

/**
 * The second person has agreed: carries out the intervention on the current rows, in its author's name, and sends it to
 * the engine. Throws the refusal of its rules if it has become impossible or overrides another state; then the gate is
 * unchanged.
 */
export const passIntervention = async (
  deps: InterventionDeps,
  tx: Tx,
  { subject, approving, gate_id, people }: Passing,
): Promise<Pick<Decision, 'events'> & { set: NonNullable<Decision['set']> }> => {
  const command_id = commandOfGate(gate_id)
  const asked = await getAwaiting(tx, command_id)
  if (!asked) throw new AppError('gate_not_waiting', 'already_decided', 'The intervention has ended.')
  const { overrides, ...body } = asked.payload as unknown as InterventionBody & Pick<Intervened, 'overrides'>
  const command: InterventionCommand = { ...approving, kind: 'intervene', actor: asked.actor, reason: asked.reason }
  const groups = people.get(asked.actor.id)?.group_keys ?? []
  const intervening = { command, subject, command_id, groups, agreed: true }
  const done = await perform(deps, tx, intervening, body)
  if (overrides && digest(overrides) !== digest(done.overrides))
    throw new AppError(
      'invalid_state_transition',
      'intervention_not_applicable',
      'It has changed since the intervention was requested. Reject it and request it again.',
    )
  const decision = decisionOf(intervening, body, done)
  await passAwaiting(tx, asked, {
    payload: decision.payload,
    undo: decision.undo ?? null,
    deadline_s: deps.config.OPERATIONS__COMMANDS__DISPATCH_DEADLINE_S,
  })
  return { events: decision.events, set: { ...decision.set, open_gates: waitingGates(subject.operation_id) } }
}
