import type { FastifyRequest } from 'fastify'
import { type Tx, together } from '../../../db/client.ts'
import {
  claimKey,
  fingerprintOf,
  type IdempotentRequest,
  type StoredAnswer,
  storeAnswer,
} from '../../../db/idempotency.ts'
import { type AcceptedCommand, appendCommand, getCommand } from '../../../db/operations/commands/rows.ts'
import { appendAudit } from '../../../db/operations/facts/audit.ts'
import { type Facts, stateFacts } from '../../../db/operations/facts/state.ts'
import { idempotency } from '../../../db/operations/tables/index.ts'
import { RESTORED } from '../../../db/restore.ts'
import type { CommandKind } from '../../../workflows/operation/messages.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Actor } from '../../shared/contracts/operations/graph.ts'
import { crashPoint } from '../../shared/crash.ts'
import { AppError, type Category, type Code, problemOf } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { OperationsDeps } from '../deps.ts'
import { isDecidedInPostgres, isDoneAtOnce } from './outcomes.ts'

/** A command as it came in: who, what, on which operation, under which key. */
export type Command = {
  kind: CommandKind
  class: 'stop' | 'start' | 'edit'
  operation_id: string
  actor: Actor
  /** Nothing: a control plane, whose scope the route has checked. */
  caller: Caller | undefined
  reason: string | null
  request_id: string
  trace: string | null
  dry_run: boolean
  if_match: string | undefined
  request: IdempotentRequest
  /** Chosen by the sender (signal_id), else made here. */
  command_id?: string
  /** The path it came on; refusals that are answered later name it. */
  instance: string
}

/** What a decision comes to: facts to state, and what the engine must hear. */
export type Decision = {
  /** Body of the signal; null: complete in Postgres, nothing is sent. */
  payload: Record<string, unknown> | null
  /** It is done, and sent, when somebody else agrees. */
  awaits?: true
  /** Facts of the timeline; none when the command changes nothing. */
  events: Facts['events']
  set?: Facts['set']
  /** Rows that a withdrawal puts back (operations.md 1.4). */
  undo?: Record<string, unknown>
  /** What a dry run shows. */
  effect: Record<string, unknown>
  /** `operation:<id>`, `gate:…`, `node:…` for the audit log. */
  object: string
  before: unknown
}

export type Steps<S> = {
  /** What is asked of others before the transaction, so that no lock waits for them. */
  ahead?: () => Promise<void>
  /** Locks and reads what the command is about; throws not_found. */
  lock: (tx: Tx) => Promise<S>
  /** Policy, state, version, then compare-and-swap writes, in that order; throws the refusal. */
  decide: (tx: Tx, subject: S, command_id: string) => Promise<Decision>
  /** The object as it is now, for the answer. */
  render: (accepted: AcceptedCommand) => Promise<object>
  /** What a dry run says may be done; read after its transaction is undone. */
  allowed: () => Promise<unknown[]>
  /** Where something was created: 201 with this Location. */
  location?: (operation_id: string, command_id: string) => string
}

export type Answer = StoredAnswer & { replayed: boolean }

/** The parts of a command that every public route takes from its request. */
export const commandOf = (
  deps: Pick<OperationsDeps, 'keys'>,
  req: FastifyRequest,
  given: Pick<Command, 'kind' | 'class' | 'operation_id'> & { reason?: string | null; dry_run?: boolean | undefined },
): Command => {
  const { caller, headers, params, query, body } = req
  const if_match = headers['if-match']
  const trace = headers.traceparent
  return {
    kind: given.kind,
    class: given.class,
    operation_id: given.operation_id,
    reason: given.reason ?? null,
    dry_run: given.dry_run ?? false,
    actor: { kind: 'user', id: caller.user_id, name: caller.username, roles: caller.roles },
    caller,
    request_id: String(req.id),
    trace: typeof trace === 'string' ? trace : null,
    if_match,
    instance: req.url.split('?')[0] ?? '/',
    request: {
      caller: `user:${caller.user_id}`,
      route: `${req.method} ${req.routeOptions.url ?? ''}`,
      key: String(headers['idempotency-key']),
      fingerprint: fingerprintOf(deps.keys.fingerprint, {
        params,
        query,
        if_match: if_match ?? null,
        body: body ?? null,
      }),
    },
  }
}

/**
 * The one way in for commands (operations.md 1.2): one transaction of key, lock, policy, state, version, swap, record
 * and promise; then a moment's wait for the outcome. The answer is stored under the key by compare-and-set, so all who
 * ask with that key get the same bytes.
 */
export const runCommand = async <S>(deps: OperationsDeps, command: Command, steps: Steps<S>): Promise<Answer> => {
  const accepted = await acceptCommand(deps, command, steps)
  if ('answer' in accepted) return { ...accepted.answer, replayed: true }
  if ('dry_run' in accepted) return { ...accepted.dry_run, replayed: false }
  const { command_id } = accepted
  const sent = accepted.sent && !isDoneAtOnce(command.kind)
  const look = () => seenNow(deps, steps, command_id)
  // Complete in Postgres: what the answer shows is read while the engine is told.
  const early = sent && isDecidedInPostgres(command.kind) ? look() : undefined
  early?.catch(() => {})
  const since = performance.now()
  const outcome = sent ? await deps.outcomes.within(command_id, deps.config.OPERATIONS__COMMANDS__WAIT_MS) : undefined
  if (sent) outcomeSeconds(deps).observe({ kind: command.kind }, (performance.now() - since) / 1000)
  const seen = outcome?.status === 'delivered' && early ? early : look()
  const looked = await seen
  const settled = !looked.row.awaits && (!sent || outcome !== undefined)
  const answer = answerOf(command, steps, command_id, looked, settled)
  return { ...(await storeAnswer(deps.db, idempotency, command.request, answer)), replayed: accepted.repeated }
}

type Accepted =
  | { command_id: string; sent: boolean; repeated: boolean }
  | { answer: StoredAnswer }
  | { dry_run: StoredAnswer }

class DryRun extends Error {
  readonly effect: Record<string, unknown>
  constructor(effect: Record<string, unknown>) {
    super('dry run')
    this.effect = effect
  }
}

/** The command transaction alone: for callers that do not wait for an outcome. */
export const acceptCommand = async <S>(deps: OperationsDeps, command: Command, steps: Steps<S>): Promise<Accepted> => {
  try {
    await steps.ahead?.()
    const accepted = await deps.db.transaction((tx) => transact(deps, tx, command, steps))
    crashPoint('api.after_commit')
    if ('command_id' in accepted && !accepted.repeated) {
      deps.nats.wake('operations')
      observe(deps).inc({ kind: command.kind, outcome: 'accepted' })
    }
    return accepted
  } catch (error) {
    if (error instanceof DryRun) {
      const allowed_actions = await steps.allowed()
      return { dry_run: jsonAnswer(200, { dry_run: true, effect: error.effect, allowed_actions }) }
    }
    if (error instanceof AppError) {
      observe(deps).inc({ kind: command.kind, outcome: 'refused' })
      if (error.category === 'policy_denied') await auditDenial(deps, command, error)
    }
    throw error
  }
}

const observe = ({ telemetry }: OperationsDeps) =>
  telemetry.counter('operation_commands_total', 'Commands by kind and what became of them.', ['kind', 'outcome'])

/** From the commit to the outcome; what is not there in time counts as the time that was waited for it. */
const outcomeSeconds = ({ telemetry }: OperationsDeps) =>
  telemetry.histogram('command_outcome_seconds', 'Time until the outcome of a command was known.', ['kind'])

const transact = async <S>(deps: OperationsDeps, tx: Tx, command: Command, steps: Steps<S>): Promise<Accepted> => {
  const command_id = command.command_id ?? uuidv7()
  // In one round trip: the server takes them in this order, and a key that is known leaves the lock unused.
  const [claiming, locking] = await Promise.allSettled([
    claimKey(tx, idempotency, command.request, command_id),
    steps.lock(tx),
  ])
  const claim = unwrap(claiming)
  if (!claim.fresh) {
    if (claim.answer) return { answer: claim.answer }
    return { command_id: claim.command_id ?? command_id, sent: true, repeated: true }
  }
  if (command.class === 'start') await refuseRestored(deps)
  const subject = unwrap(locking)
  const decision = await steps.decide(tx, subject, command_id)
  if (command.dry_run) throw new DryRun(decision.effect)
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
    operation_id: command.operation_id,
    kind: command.kind,
    class: command.class,
    payload: decision.payload,
    actor: command.actor,
    reason: command.reason,
    request_id: command.request_id,
    trace: command.trace,
    undo: decision.undo ?? null,
    deadline_s: deps.config.OPERATIONS__COMMANDS__DISPATCH_DEADLINE_S,
    decided,
    awaits: decision.awaits ?? false,
  })
  await together(stated, audited, queued)
  crashPoint('api.before_commit')
  return { command_id, sent: decision.payload !== null && !decision.awaits, repeated: false }
}

/** After a restore nothing starts until a person has accepted it; stopping always goes. */
const refuseRestored = async ({ fence }: OperationsDeps): Promise<void> => {
  if ((await fence()).held_since === null) return
  throw new AppError('internal_error', 'restored', RESTORED, {
    status: 503,
    hint: 'Pause, cancel and reject go through. All else waits for who runs this installation.',
  })
}

const unwrap = <T>(settled: PromiseSettledResult<T>): T => {
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}

export const actorText = ({ kind, id }: Actor): string => (kind === 'user' ? `user:${id}` : id)

/** A 403 leaves a row of its own: its transaction is gone. */
const auditDenial = async (deps: OperationsDeps, command: Command, error: AppError): Promise<void> => {
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

const jsonAnswer = (status: number, body: unknown, headers: Record<string, string> = {}): StoredAnswer => ({
  status,
  headers: { 'cache-control': 'no-store', ...headers },
  body: Buffer.from(JSON.stringify(body)),
})

type Seen = { row: AcceptedCommand; view: object | undefined }

/** The command and its object as they are now; no object for a command that did not come to be. */
const seenNow = async <S>(deps: OperationsDeps, steps: Steps<S>, command_id: string): Promise<Seen> => {
  const row = await getCommand(deps.db, command_id)
  if (!row) throw new AppError('internal_error', 'unexpected', 'The command is not there.')
  const { status } = row.command
  return { row, view: status === 'refused' || status === 'withdrawn' ? undefined : await steps.render(row) }
}

const answerOf = <S>(
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
      detail ?? 'A cancel came before this could be carried out.',
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
