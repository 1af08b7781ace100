import { type StoredAnswer, storeAnswer } from '../../../db/command/keys.ts'
import { type Answer, answerOf } from '../../../db/command/run.ts'
import { type AcceptedCommand, getCommand } from '../../../db/operations/commands/rows.ts'
import { idempotency } from '../../../db/operations/tables/index.ts'
import { AppError, type Category, type Code, problemOf } from '../../shared/errors.ts'
import type { CommandDeps, Uses } from '../deps.ts'
import { acceptCommand } from './accept.ts'
import type { Command, Steps } from './command.ts'
import { isDecidedInPostgres, isDoneAtOnce } from './outcomes.ts'

/**
 * The only entrance for public commands (operations.md 1.2): one transaction of key, lock, policy, state, version, swap,
 * record and promise; then a short wait for the outcome. The answer is stored under the key by compare-and-set, so all
 * requests with that key get the same bytes.
 */
export const runCommand = async <S>(deps: CommandDeps, command: Command, steps: Steps<S>): Promise<Answer> => {
  const accepted = await acceptCommand(deps, command, steps)
  if ('answer' in accepted) return accepted.answer
  if ('tried' in accepted) {
    const allowed_actions = await steps.allowed()
    return { ...jsonAnswer(200, { dry_run: true, effect: accepted.tried, allowed_actions }), replayed: false }
  }
  const { command_id, repeated } = accepted
  const sent = accepted.sent && !isDoneAtOnce(command.kind)
  const look = () => seenNow(deps, steps, command_id)
  // Complete in Postgres: the content of the answer is read while the engine is told.
  const early = sent && isDecidedInPostgres(command.kind) ? look() : undefined
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

/** From the commit to the outcome; an outcome that is not there in time counts as the time of the wait. */
const outcomeSeconds = ({ telemetry }: Uses<'telemetry'>) =>
  telemetry.histogram('signalbox_command_outcome_seconds', 'Time until the outcome of a command was known.', ['kind'])

const jsonAnswer = (status: number, body: unknown, headers: Record<string, string> = {}): StoredAnswer =>
  answerOf({ status, body, headers: { 'cache-control': 'no-store', ...headers } })

type Seen = { row: AcceptedCommand; view: object | undefined }

/** The command and its object as they are now; no object for a refused or withdrawn command. */
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
    const { category = 'invalid_state_transition', code, detail } = row.outcome ?? {}
    const error = new AppError(
      category as Category,
      (code as Code | undefined) ?? 'already_cancelling',
      detail ?? 'The operation was canceled first.',
      { extra: { command: row.command } },
    )
    const problem = problemOf(error, command.request_id, command.instance)
    return jsonAnswer(error.status, problem, { 'content-type': 'application/problem+json; charset=utf-8' })
  }
  const body = { ...view, command: row.command }
  const pending = `/v1/operations/${row.operation_id}/commands/${command_id}`
  if (!settled) return jsonAnswer(202, body, { location: pending })
  if (!steps.location) return jsonAnswer(200, body)
  return jsonAnswer(201, body, { location: steps.location(row.operation_id, command_id) })
}
