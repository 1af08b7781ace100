import { type Last, type Tx, together } from '../../../db/client.ts'
import { type StoredAnswer, storeAnswer } from '../../../db/command/keys.ts'
import { type Answer, answerOf, type Kernel, keysIn, run } from '../../../db/command/run.ts'
import { type AcceptedCommand, appendCommand, getCommand } from '../../../db/operations/commands/rows.ts'
import { appendAudit, stateFacts } from '../../../db/operations/facts/state.ts'
import { idempotency } from '../../../db/operations/tables/index.ts'
import { RESTORED } from '../../../db/restore.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, type Category, type Code, problemOf } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { inLine } from '../../shared/process/lines.ts'
import type { AcceptDeps, CommandDeps, Uses } from '../deps.ts'
import { actorText, auditDenial, type Command, type Decision, type Steps } from './command.ts'
import { isDecidedInPostgres, isDoneAtOnce } from './outcomes.ts'

/**
 * The only entry point for public commands (operations.md 1.2): one transaction for key, lock, policy, state, version,
 * swap, record and promise; then a short wait for the outcome. The answer is stored under the key by compare-and-set,
 * so all requests with that key get the same bytes.
 */
export const runCommand = async <S>(deps: CommandDeps, command: Command, steps: Steps<S>): Promise<Answer> => {
  const accepted = await acceptCommand(deps, command, steps)
  if ('answer' in accepted) return accepted.answer
  if ('tried' in accepted) {
    const allowed_actions = await steps.allowed()
    return { ...jsonAnswer(200, { dry_run: true, effect: accepted.tried, allowed_actions }), replayed: false }
  }
  const { repeated, follows } = accepted
  const command_id = follows ?? accepted.command_id
  const sent = follows !== undefined || (accepted.sent && !isDoneAtOnce(command.kind))
  const look = () => seenNow(deps, steps, command_id)
  // Complete in Postgres: the answer's content is read while the engine is told.
  const early = accepted.sent && isDecidedInPostgres(command.kind) ? look() : undefined
  early?.catch(() => {})
  const since = performance.now()
  const outcome = sent ? await deps.outcomes.within(command_id, deps.config.OPERATIONS__COMMANDS__WAIT_MS) : undefined
  if (sent) outcomeSeconds(deps).observe({ kind: command.kind }, (performance.now() - since) / 1000)
  const seen = outcome?.status === 'delivered' && early ? early : look()
  const looked = await seen
  const settled = !looked.row.awaits && (!sent || outcome !== undefined)
  const given = renderAnswer(command, steps, command_id, looked, settled)
  return { ...(await storeAnswer(deps.db, idempotency, command.request, given)), replayed: repeated }
}

/** From the commit to the outcome; an outcome that does not arrive in time counts as the time of the wait. */
const outcomeSeconds = ({ telemetry }: Uses<'telemetry'>) =>
  telemetry.histogram('signalbox_command_outcome_seconds', 'Time until the outcome of a command was known.', ['kind'])

const jsonAnswer = (status: number, body: unknown, headers: Record<string, string> = {}): StoredAnswer =>
  answerOf({ status, body, headers: { 'cache-control': 'no-store', ...headers } })

type Seen = { row: AcceptedCommand; view: object | undefined }

/** Returns the current command and object; no object for a refused or withdrawn command. */
const seenNow = async <S>(deps: Uses<'db'>, steps: Steps<S>, command_id: string): Promise<Seen> => {
  const row = await getCommand(deps.db, command_id)
  if (!row) throw new AppError('internal_error', 'unexpected', 'The command record is missing.')
  const { status } = row.command
  return { row, view: status === 'refused' || status === 'withdrawn' ? undefined : await steps.render(row) }
}

const renderAnswer = <S>(
  command: Command,
  steps: Steps<S>,
  command_id: string,
  { row, view }: Seen,
  settled: boolean,
): StoredAnswer => {
  if (view === undefined) {
    const unsent =
      row.command.code === 'superseded'
        ? { code: 'already_cancelling', detail: 'The operation was canceled first.' }
        : {
            code: 'command_withdrawn',
            detail: 'The command came too late, or was based on a decision that never took effect.',
          }
    const { category = 'invalid_state_transition', code = unsent.code, detail = unsent.detail } = row.outcome ?? {}
    const error = new AppError(category as Category, code as Code, detail, { extra: { command: row.command } })
    const problem = problemOf(error, command.request_id, command.instance)
    return jsonAnswer(error.status, problem, { 'content-type': 'application/problem+json; charset=utf-8' })
  }
  const body = { ...view, command: row.command }
  const pending = `/v1/operations/${row.operation_id}/commands/${command_id}`
  if (!settled) return jsonAnswer(202, body, { location: pending })
  if (!steps.location) return jsonAnswer(200, body)
  return jsonAnswer(201, body, { location: steps.location(row.operation_id, command_id) })
}

type Accepted =
  | { command_id: string; sent: boolean; repeated: boolean; follows?: string | undefined }
  | { answer: Answer }
  | { tried: Record<string, unknown> }

/** Runs the command transaction alone, for callers that do not wait for an outcome. */
export const acceptCommand = async <S>(deps: AcceptDeps, command: Command, steps: Steps<S>): Promise<Accepted> => {
  const { kind, request, dry_run, command_id = uuidv7() } = command
  // A repeat waits as if it had been sent.
  let sent = true
  let follows: string | undefined
  try {
    await steps.ahead?.()
    const decided = () =>
      run(
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
            follows = decision.follows
            const { effect } = decision
            return { effect, keep: (last) => keep(deps, tx, last, { ...command, command_id }, decision) }
          },
        },
      )
    // A stop overtakes all that wait.
    const outcome = command.class === 'stop' ? await decided() : await inLine(deps.db, command.operation_id, decided)
    if (!('later' in outcome)) return outcome
    const { later } = outcome
    if (!later.repeated) {
      deps.nats.wake('operations')
      observe(deps).inc({ kind, outcome: 'accepted' })
    }
    return { ...later, sent, follows }
  } catch (error) {
    if (error instanceof AppError) observe(deps).inc({ kind, outcome: 'refused' })
    throw error
  }
}

/** Gives one of our commands, unless the operation just ended. Returns whether it was accepted for the first time. */
export const acceptUnlessEnded = async <S>(deps: AcceptDeps, command: Command, steps: Steps<S>): Promise<boolean> => {
  try {
    const accepted = await acceptCommand(deps, command, steps)
    return 'command_id' in accepted && !accepted.repeated
  } catch (error) {
    if (error instanceof AppError && error.category === 'invalid_state_transition') return false
    throw error
  }
}

/** The keys of operations; a 403 leaves an audit row. */
const kernelOf = (deps: Uses<'db' | 'keys'>, command: Command): Kernel => ({
  db: deps.db,
  keys: keysIn(idempotency),
  denied: (error) => {
    const { actor, kind, operation_id, request_id, object = `operation:${operation_id}` } = command
    const by = { actor: actorText(actor), roles: actor.roles ?? [] }
    return auditDenial(deps, { ...by, action: kind, object, request_id }, error)
  },
})

const observe = ({ telemetry }: Uses<'telemetry'>) =>
  telemetry.counter('signalbox_operation_commands_total', 'Commands by kind and result.', ['kind', 'outcome'])

/** Writes the decision, its facts, audit and the message to the engine. */
const keep = async (
  deps: Uses<'config' | 'keys'>,
  tx: Tx,
  last: Last,
  command: Command & { command_id: string },
  decision: Decision,
): Promise<'later'> => {
  const { command_id } = command
  const decided = decision.events.length > 0
  const written = together(...(decision.writes ?? []))
  const stated = decided
    ? stateFacts(tx, command.operation_id, {
        events: decision.events,
        set: decision.set ?? {},
        head: decision.head,
        ...pick(command, 'request_id', 'trace'),
      })
    : Promise.resolve()
  const audited = appendAudit(tx, deps.keys.audit, {
    actor: actorText(command.actor),
    roles: command.actor.roles ?? [],
    action: command.kind,
    ...pick(decision, 'object', 'before'),
    outcome: 'done',
    ...pick(command, 'reason', 'request_id'),
    after: decision.payload ?? decision.effect,
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
  const sent = together(written, stated, audited, queued)
  if (decision.head) last(sent)
  else await sent
  return 'later'
}

/** After a restore no start is allowed until a person has accepted the restore; stopping always is. */
const refuseRestored = async ({ fence }: Uses<'fence'>, command: Command): Promise<void> => {
  const starts = command.class === 'start' || command.kind === 'intervene'
  if (!starts || (await fence()).held_since === null) return
  throw new AppError('internal_error', 'restored', RESTORED, {
    hint: 'Pause, cancel and reject still work. Everything else waits for the operator of this installation.',
  })
}
