import { and, eq, isNull, sql } from 'drizzle-orm'
import { equals, type Tx, updateRows } from '../../../db/client.ts'
import { getGate } from '../../../db/operations/gates/rows.ts'
import { executions, gates, node_attempts, operations } from '../../../db/operations/tables/index.ts'
import type { CommandBodies } from '../../../workflows/operation/messages.ts'
import { refuseGateApprove } from '../../../workflows/operation/rules/gates.ts'
import type { InterventionBody } from '../../shared/contracts/operations/nodes.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { throwIfRefused } from '../policies/authority.ts'
import { gateFacts } from '../policies/footing.ts'
import type { Intervened, Intervening, InterventionDeps } from './types.ts'

export type Payload = InterventionBody['payload']
export type Act = (deps: InterventionDeps, tx: Tx, intervening: Intervening, payload: Payload) => Promise<Intervened>

export const notApplicable = (detail: string) =>
  new AppError('invalid_state_transition', 'intervention_not_applicable', detail)

export const message = (type: CommandBodies['intervene']['type'], rest: Partial<CommandBodies['intervene']>) => ({
  type,
  node_id: null,
  ...rest,
})

export const EXTEND: Record<NonNullable<Payload['of']>, Act> = {
  operation: async (_deps, tx, { subject }, { add_s = 0 }) => {
    const { operation_id, facts } = subject
    if (facts.status === 'cancelling')
      throw notApplicable('The operation is being canceled: only the time of an attempt can be extended.')
    const [moved] = await tx
      .update(operations)
      .set({ deadline_at: sql`${operations.deadline_at} + make_interval(secs => ${add_s})` })
      .where(and(eq(operations.operation_id, operation_id), sql`${operations.deadline_at} is not null`))
      .returning({ deadline_at: sql<string>`operations.iso(${operations.deadline_at})` })
    if (!moved) throw notApplicable('The operation has no deadline.')
    return {
      payload: message('extend_deadline', { payload: { add_s } }),
      undo: { added_s: add_s },
      ...extended('the operation', add_s, moved.deadline_at),
    }
  },

  gate: async (_deps, tx, { subject }, { id = '', add_s = 0 }) => {
    const { operation_id, facts } = subject
    const row = await getGate(tx, operation_id, id)
    if (!row) throw notFound('gate', id)
    throwIfRefused(refuseGateApprove(facts, gateFacts(row), { round: row.gate.round, user_id: '' }))
    const [moved] = await tx
      .update(gates)
      .set({ deadline_at: sql`${gates.deadline_at} + make_interval(secs => ${add_s})` })
      .where(
        and(equals(gates, { operation_id, gate_id: id, status: 'waiting' }), sql`${gates.deadline_at} is not null`),
      )
      .returning({ round: gates.round, deadline_at: sql<string>`operations.iso(${gates.deadline_at})` })
    if (!moved) throw notApplicable(`Gate "${id}" has no deadline.`)
    return {
      payload: message('extend_deadline', { gates: { [id]: { status: 'waiting', ...moved } } }),
      gate_id: id,
      undo: { gate_time: { gate_id: id, round: moved.round, added_s: add_s } },
      ...extended(`gate ${id}`, add_s, moved.deadline_at),
    }
  },

  // For an external agent's work: the agent and each slice read the row. All other work has its time in the plan.
  attempt: async (_deps, tx, { subject: { operation_id } }, { id = '', add_s = 0 }) => {
    const more = sql`make_interval(secs => ${add_s})`
    const [moved] = await tx
      .update(executions)
      .set({ deadline_at: sql`${executions.deadline_at} + ${more}` })
      .where(and(equals(executions, { operation_id, node_id: id }), isNull(executions.closed_at)))
      .returning({
        role: executions.role,
        attempt: executions.attempt,
        deadline_at: sql<string>`operations.iso(${executions.deadline_at})`,
      })
    if (!moved) throw notApplicable(`No external agent is working on "${id}".`)
    await updateRows(tx, { operation_id, node_id: id, role: moved.role, attempt: moved.attempt }, node_attempts, {
      deadline_at: sql`${node_attempts.deadline_at} + ${more}`,
    })
    return { payload: null, node_id: id, ...extended(`the attempt of node ${id}`, add_s, moved.deadline_at) }
  },
}

const extended = (what: string, add_s: number, deadline_at: string) => ({
  statement: `extend_deadline of ${what} by ${add_s} s`,
  data: { add_s, deadline_at },
  effect: { deadline_at },
  before: { add_s },
})
