import { decideAlone } from '../../../db/operations/gates/alone.ts'
import { getGate } from '../../../db/operations/gates/rows.ts'
import { refuseGateApprove } from '../../../workflows/operation/rules/gates.ts'
import type { CheckResult } from '../../shared/contracts/engine/signals.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { type Command, lockVisible, type Steps, type Subject } from '../command/command.ts'
import type { PolicyDeps } from '../deps.ts'
import { operationObject, refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import { gateFacts } from '../policies/footing.ts'

/** An external check's answer to the gate that waits for it: passed or failed decides, running is only shown. */
export const checkResultSteps = (deps: PolicyDeps, command: Command, result: CheckResult): Steps<Subject> => ({
  lock: (tx) => lockVisible(deps, tx, command),
  decide: async (tx, subject, command_id) => {
    const { gate_id, round, verdict, summary = null, details_url = null } = result
    if (command.caller)
      throwIfRefused(refuseByPolicy(deps, command.caller, 'operation.signal', operationObject(subject), subject.places))
    const row = await getGate(tx, command.operation_id, gate_id)
    if (!row) throw notFound('gate', gate_id)
    if (row.gate.kind !== 'external_check')
      throw new AppError('policy_denied', 'not_eligible', 'This gate is decided by people.')
    const { check } = row.gate.policy
    if (check && check.service !== command.actor.name)
      throw new AppError('policy_denied', 'not_eligible', `Only ${check.service} can answer this gate.`)
    throwIfRefused(refuseGateApprove(subject.facts, gateFacts(row), { round, user_id: '' }))
    const said = { actor: command.actor, gate_id, command_id, reason: command.reason }
    const data = { round, verdict, summary, details_url, digest: row.gate.digest }
    const frame = { object: `gate:${command.operation_id}/${gate_id}`, before: { status: row.gate.status, round } }
    if (verdict === 'running')
      return { ...frame, payload: null, events: [{ ...said, type: 'gate.progress', data }], effect: data }

    const status = verdict === 'passed' ? ('approved' as const) : ('rejected' as const)
    const statement = `${command.actor.name} answered ${verdict} to gate ${gate_id}, round ${round}`
    return { ...frame, ...(await decideAlone(tx, { command, command_id, row, status, statement, data })), effect: data }
  },
  render: async () => ({}),
  allowed: async () => [],
})
