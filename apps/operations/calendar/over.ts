import type { Tx } from '../../../db/client.ts'
import { SYSTEM } from '../../../db/operations/facts/state.ts'
import { decideAlone } from '../../../db/operations/gates/alone.ts'
import { getGate } from '../../../db/operations/gates/rows.ts'
import { listFreezeGates, lockCalendar } from '../../../db/operations/plans/calendar.ts'
import { refuseGateApprove } from '../../../workflows/operation/rules/gates.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { uuidv5 } from '../../shared/ids.ts'
import { type Command, lockVisible, ownCommand, type Steps, type Subject } from '../command/command.ts'
import { acceptUnlessEnded } from '../command/run.ts'
import type { FreezeDeps } from '../deps.ts'
import { throwIfRefused } from '../policies/authority.ts'
import { gateFacts } from '../policies/footing.ts'
import { libraryNow } from '../targets/calendar.ts'

/**
 * Approves the waiting gates of freezes that are over or gone (operations.md 2.5): their question, whether to continue
 * despite the freeze, has no more object. Both the calendar of the gate's operation and the current one must say so: in
 * an upgrade, a process with earlier calendar files may not know a freeze. Returns how many it approved.
 */
export const passOverFreezes = async (deps: FreezeDeps, failed: (error: unknown) => unknown): Promise<number> => {
  const waiting = await listFreezeGates(deps.db)
  if (waiting.length === 0) return 0
  const lasting = await freezesAt(deps, deps.db, deps.clock.now().getTime())
  let passed = 0
  for (const gate of waiting) {
    if (lasting.has(gate.freeze_id)) continue
    const { operation_id, gate_id, round } = gate
    const command_id = uuidv5(operation_id, `freeze over ${gate_id} ${round}`)
    const command = ownCommand({
      ...{ kind: 'gate_decided', class: 'edit', operation_id, command_id, actor: SYSTEM, request_id: command_id },
      reason: `The freeze ${gate.freeze_id} is over.`,
      instance: '/freezes',
      request: { caller: SYSTEM.id, route: 'freeze over', key: command_id, fingerprint: [Buffer.from(command_id)] },
    })
    const done = await acceptUnlessEnded(deps, command, overSteps(deps, command, gate)).catch(failed)
    if (done === true) passed += 1
  }
  return passed
}

/** The freezes whose end has not come at `now`, in milliseconds. */
const freezesAt = async ({ library }: FreezeDeps, db: FreezeDeps['db'] | Tx, now: number): Promise<Set<string>> => {
  const { freezes } = await libraryNow(db, library)
  return new Set(freezes.filter(({ to }) => Date.parse(to) > now).map(({ freeze_id }) => freeze_id))
}

type FreezeGate = Awaited<ReturnType<typeof listFreezeGates>>[number]

const overSteps = (deps: FreezeDeps, command: Command, { gate_id, round, freeze_id }: FreezeGate): Steps<Subject> => ({
  lock: (tx) => lockVisible(deps, tx, command),
  decide: async (tx, subject, command_id) => {
    const row = await getGate(tx, command.operation_id, gate_id)
    if (!row) throw notFound('gate', gate_id)
    throwIfRefused(refuseGateApprove(subject.facts, gateFacts(row), { round, user_id: '' }))
    // No freeze is put between this look and the decision.
    await lockCalendar(tx, 'to read')
    const { operation_id } = command
    const [over] = await listFreezeGates(tx, { operation_id, gate_id })
    // The refusal leaves the key unused, so a later turn may pass the gate.
    if (!over || (await freezesAt(deps, tx, Date.parse(subject.now))).has(freeze_id))
      throw new AppError(
        'invalid_state_transition',
        'intervention_not_applicable',
        `The freeze ${freeze_id} holds the operation again.`,
        { hint: 'Decide at its gate, or wait for its end.' },
      )
    const statement = `Gate ${gate_id} approved in round ${round}: the freeze ${freeze_id} is over`
    const data = { round, freeze_id, digest: row.gate.digest }
    const decided = { command, command_id, row, status: 'approved' as const, statement, data, freeze_id }
    const before = { status: row.gate.status, round }
    const effect = { freeze_id }
    return { object: `gate:${operation_id}/${gate_id}`, before, effect, ...(await decideAlone(tx, decided)) }
  },
  render: async () => ({}),
  allowed: async () => [],
})
