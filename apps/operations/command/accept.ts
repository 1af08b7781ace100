import { type Tx, together } from '../../../db/client.ts'
import { type Answer, type Kernel, keysIn, run } from '../../../db/command/run.ts'
import { appendCommand } from '../../../db/operations/commands/rows.ts'
import { appendAudit } from '../../../db/operations/facts/audit.ts'
import { stateFacts } from '../../../db/operations/facts/state.ts'
import { idempotency } from '../../../db/operations/tables/index.ts'
import { RESTORED } from '../../../db/restore.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { AcceptDeps, Uses } from '../deps.ts'
import { actorText, type Command, type Decision, type Steps } from './command.ts'

type Accepted =
  | { command_id: string; sent: boolean; repeated: boolean }
  | { answer: Answer }
  | { tried: Record<string, unknown> }

/** The command transaction alone: for callers that do not wait for an outcome. */
export const acceptCommand = async <S>(deps: AcceptDeps, command: Command, steps: Steps<S>): Promise<Accepted> => {
  const { kind, request, dry_run, command_id = uuidv7() } = command
  // A repeat is waited for as if it was sent.
  let sent = true
  try {
    await steps.ahead?.()
    const outcome = await run(
      kernelOf(deps, command),
      { request, command_id, dry_run },
      {
        lock: async (tx) => {
          const [, subject] = await together(refuseRestored(deps, command), steps.lock(tx))
          return subject
        },
        decide: async (tx, subject) => {
          const decision = await steps.decide(tx, subject, command_id)
          sent = decision.payload !== null && !decision.awaits
          return { effect: decision.effect, keep: () => keep(deps, tx, { ...command, command_id }, decision) }
        },
      },
    )
    if (!('later' in outcome)) return outcome
    const { later } = outcome
    if (!later.repeated) {
      deps.nats.wake('operations')
      observe(deps).inc({ kind, outcome: 'accepted' })
    }
    return { ...later, sent }
  } catch (error) {
    if (error instanceof AppError) observe(deps).inc({ kind, outcome: 'refused' })
    throw error
  }
}

/** The keys of operations; a 403 leaves an audit row. */
const kernelOf = (deps: Uses<'db' | 'keys'>, command: Command): Kernel => ({
  db: deps.db,
  keys: keysIn(idempotency),
  denied: (error) => auditDenial(deps, command, error),
})

const observe = ({ telemetry }: Uses<'telemetry'>) =>
  telemetry.counter('signalbox_operation_commands_total', 'Commands by kind and result.', ['kind', 'outcome'])

/** Writes facts, audit and the message to the engine. */
const keep = async (
  deps: Uses<'config' | 'keys'>,
  tx: Tx,
  command: Command & { command_id: string },
  decision: Decision,
): Promise<'later'> => {
  const { command_id } = command
  const decided = decision.events.length > 0
  const stated = decided
    ? stateFacts(tx, command.operation_id, {
        events: decision.events,
        set: decision.set ?? {},
        request_id: command.request_id,
        trace: command.trace,
      })
    : Promise.resolve()
  const audited = appendAudit(tx, deps.keys.audit, {
    actor: actorText(command.actor),
    roles: command.actor.roles ?? [],
    action: command.kind,
    object: decision.object,
    outcome: 'done',
    reason: command.reason,
    before: decision.before,
    after: decision.payload ?? decision.effect,
    request_id: command.request_id,
    command_id,
  })
  const queued = appendCommand(tx, {
    command_id,
    ...pick(command, 'operation_id', 'kind', 'class'),
    payload: decision.payload,
    ...pick(command, 'actor', 'reason', 'request_id', 'trace'),
    undo: decision.undo ?? null,
    deadline_s: deps.config.OPERATIONS__COMMANDS__DISPATCH_DEADLINE_S,
    decided,
    awaits: decision.awaits ?? false,
  })
  await together(stated, audited, queued)
  return 'later'
}

/** After a restore no start is allowed until a person has accepted it; stopping always is. */
const refuseRestored = async ({ fence }: Uses<'fence'>, command: Command): Promise<void> => {
  if (command.class !== 'start' || (await fence()).held_since === null) return
  throw new AppError('internal_error', 'restored', RESTORED, {
    hint: 'Pause, cancel and reject go through. All else waits for who runs this installation.',
  })
}

/** A 403 leaves a row of its own: its transaction is gone. */
const auditDenial = async (deps: Uses<'db' | 'keys'>, command: Command, error: AppError): Promise<void> => {
  await deps.db.transaction((tx) =>
    appendAudit(tx, deps.keys.audit, {
      actor: actorText(command.actor),
      roles: command.actor.roles ?? [],
      action: command.kind,
      object: `operation:${command.operation_id}`,
      outcome: 'denied',
      reason: error.code,
      request_id: command.request_id,
    }),
  )
}
