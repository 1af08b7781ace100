import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { bookkeepingQueue, type CommandMessage, type OperationInput } from '../../../workflows/operation/messages.ts'
import type { Actor } from '../../shared/contracts/operations/graph.ts'
import { crashPoint } from '../../shared/crash.ts'
import { pick } from '../../shared/data/pick.ts'
import type { Logger } from '../../shared/telemetry.ts'
import { beginSpan } from '../../shared/tracing.ts'
import type { RelayConfig } from '../config.ts'
import type { Engine, Sent } from './temporal.ts'

type CommandRow = {
  command_id: string
  operation_id: string
  seq: string
  kind: CommandMessage['kind']
  class: 'stop' | 'start' | 'edit'
  payload: Record<string, unknown>
  actor: Actor
  reason: string | null
  request_id: string | null
  trace: string | null
  not_after: Date | null
  /** Attempts before this one. */
  attempts: number
  created_at: Date
}

/**
 * Takes the next unsent command of each operation: strictly by seq, one in flight each, marked `sending` as it is
 * taken. A start that was never sent and is past its deadline belongs to the sweeper; it still holds back later
 * commands. After a restore of the database only stops are sent until a person has accepted the restore.
 */
const TAKE = `
  with head as (
    select distinct on (operation_id) command_id, class, status, attempts, not_after, next_try_at
    from operations.operation_commands where status in ('pending', 'sending') and not operation_id = any($1::uuid[])
    order by operation_id, seq),
  due as (
    select command_id from head
    where not (status = 'pending' and attempts = 0 and class = 'start' and coalesce(not_after < clock_timestamp(), false))
      and coalesce(next_try_at <= clock_timestamp(), true)
      and (class = 'stop' or not exists (select from operations.relay_state where name = 'restored' and stream_created is not null))
    limit $2)
  update operations.operation_commands set status = 'sending', attempts = attempts + 1
  where command_id in (select command_id from due) and status in ('pending', 'sending')
  returning command_id, operation_id, seq, kind, class, payload, actor, reason, request_id, trace, not_after, attempts - 1 as attempts, created_at`

export type CommandsDeps = {
  pool: pg.Pool
  engine: Engine
  config: RelayConfig
  log: Logger
  /** The engine has been told of this command: callers that wait only for that may continue. */
  notify: (told: { command_id: string; kind: string }) => void
  observe: (kind: string, result: Sent['kind']) => void
  /** Throws while no command may be sent. */
  refuse?: () => Promise<void>
}

/**
 * Carries accepted commands to Temporal (reliability.md 4.4). The doubt is recorded before it exists: `sending` is
 * committed before each send. Commands of different operations are sent in parallel, those of one strictly in order.
 */
export const createCommandSender = ({ pool, engine, config, log, notify, observe, refuse }: CommandsDeps) => {
  const busy = new Map<string, Promise<void>>()
  let woken: (() => void) | undefined

  let away = false

  const send = async (row: CommandRow): Promise<void> => {
    const span = row.trace
      ? beginSpan('relay.send', row.trace, pick(row, 'kind', 'command_id', 'operation_id'))
      : undefined
    const message = messageOf(span ? { ...row, trace: span.traceparent } : row)
    if (row.kind === 'start' && (await startIsTooLate(pool, engine, row))) return
    crashPoint('relay.before_send')
    const sent =
      row.kind === 'start' ? await engine.start(inputOf(row, message, config)) : await signal(engine, row, message)
    crashPoint('relay.after_send')
    span?.end({ result: sent.kind }, sent.kind !== 'sent')
    observe(row.kind, sent.kind)
    away = sent.kind === 'again'
    if (sent.kind === 'sent') notify({ command_id: row.command_id, kind: row.kind })
    await settle(pool, row, sent, engine, log)
  }

  return {
    /** Runs one turn: takes the next commands of free operations and begins to send them. */
    turn: async (): Promise<boolean> => {
      const free = config.RELAY__COMMANDS__IN_FLIGHT - busy.size
      if (free <= 0) return false
      await refuse?.()
      // While the engine is away no more commands are put in doubt, because an unsent one can still be withdrawn.
      if (away)
        await engine.health().then(() => {
          away = false
        })
      const { rows } = await pool.query<CommandRow>({ name: 'take', text: TAKE, values: [[...busy.keys()], free] })
      for (const row of rows) {
        const work = send(row)
          .catch((error: Error) =>
            log.warn({ err: error, command_id: row.command_id }, 'a command could not be sent; trying again'),
          )
          .finally(() => {
            busy.delete(row.operation_id)
            woken?.()
          })
        busy.set(row.operation_id, work)
      }
      return false
    },
    onFree: (wake: () => void) => {
      woken = wake
    },
    drain: () => Promise.all(busy.values()).then(() => undefined),
  }
}

/**
 * Sends a signal. If the engine refuses its content, the number must arrive all the same, because the end of the
 * operation may wait for it: the sweeper withdraws a start under a later number, a stop goes out without its texts, and
 * an empty message takes the place of an edit. If even that is refused, the content is not at fault, and the command
 * is tried again.
 */
const signal = async (engine: Engine, row: CommandRow, message: CommandMessage): Promise<Sent> => {
  const sent = await engine.signal(row.operation_id, message)
  if (sent.kind !== 'invalid' || row.class === 'start') return sent
  const bare = { ...message, reason: null, request_id: null, trace: null }
  const empty = { command_id: randomUUID(), kind: 'place_free' as const, body: { node_ids: [] as string[] } }
  const arrived = await engine.signal(row.operation_id, row.class === 'stop' ? bare : { ...bare, ...empty })
  if (arrived.kind === 'invalid') return { ...arrived, kind: 'again' }
  return arrived.kind === 'sent' && row.class === 'edit' ? sent : arrived
}

/** Whether a start in doubt is overdue and unknown to the engine: it never happened, so the sweeper may withdraw it. */
const startIsTooLate = async (pool: pg.Pool, engine: Engine, row: CommandRow): Promise<boolean> => {
  if (!row.not_after || row.not_after.getTime() > Date.now()) return false
  if ((await engine.describe(row.operation_id)) !== 'gone') return false
  await pool.query(
    `update operations.operation_commands set status = 'pending', attempts = 0 where command_id = $1 and status = 'sending'`,
    [row.command_id],
  )
  return true
}

const messageOf = (row: CommandRow): CommandMessage =>
  ({
    v: 1,
    command_id: row.command_id,
    seq: Number(row.seq),
    kind: row.kind,
    at: row.created_at.toISOString(),
    not_after: row.not_after?.toISOString() ?? null,
    ...pick(row, 'actor', 'request_id', 'trace', 'reason'),
    body: row.kind === 'start' ? {} : row.payload,
  }) as CommandMessage

const inputOf = (row: CommandRow, message: CommandMessage, config: RelayConfig): OperationInput => {
  const start = row.payload as Pick<
    OperationInput,
    'title' | 'plan_id' | 'plan_hash' | 'requester' | 'kind' | 'page' | 'test_roll_events'
  >
  return {
    v: 1,
    operation_id: row.operation_id,
    ...start,
    start: message as CommandMessage<'start'>,
    bookkeeping_queue: bookkeepingQueue(config.RELAY__TEMPORAL__QUEUE_PREFIX),
    search_attributes: config.RELAY__TEMPORAL__SEARCH_ATTRIBUTES,
  }
}

/** Its worker has recorded another namespace for it: the relay asks at the wrong place, so it is not lost. */
const ELSEWHERE = `o.engine_ref ->> 'namespace' <> `
/** The sweeper has acted on a finding that the engine lost it. */
const KNOWN_LOST = `coalesce(c.pause_reason = 'engine_lost', false)`

const settle = async (
  pool: pg.Pool,
  row: CommandRow,
  sent: Sent,
  { namespace }: Pick<Engine, 'namespace'>,
  log: Logger,
): Promise<void> => {
  const { command_id, operation_id } = row
  switch (sent.kind) {
    case 'sent':
      await pool.query(
        `update operations.operation_commands set status = 'delivered', last_error = null where command_id = $1 and status = 'sending'`,
        [command_id],
      )
      return
    case 'gone':
      log.error({ command_id, operation_id, namespace }, 'the engine does not know this operation')
      await pool.query(
        `with finding as (insert into operations.engine_findings (operation_id, found)
           select $2, 'gone' where not exists (select from operations.operations o join operations.operation_control c using (operation_id)
             where o.operation_id = $2 and (${ELSEWHERE} $3 or ${KNOWN_LOST})))
         update operations.operation_commands set last_error = 'the engine does not know this operation', next_try_at = clock_timestamp() + interval '30 s' where command_id = $1`,
        [command_id, operation_id, namespace],
      )
      return
    case 'invalid':
      log.error({ command_id, operation_id, error: sent.error }, 'the engine refuses this command')
      // Its decision is in the rows, and only the sweeper undoes it.
      await pool.query(
        `update operations.operation_commands set status = 'pending', attempts = 0, last_error = $2, not_after = clock_timestamp()
         where command_id = $1 and status = 'sending' and class = 'start'`,
        [command_id, sent.error],
      )
      await pool.query(
        `update operations.operation_commands set status = 'refused', last_error = $2, outcome_at = clock_timestamp(),
           outcome = jsonb_build_object('category', 'internal_error', 'code', 'unexpected', 'detail', 'The workflow engine refused this command.')
         where command_id = $1 and status = 'sending'`,
        [command_id, sent.error],
      )
      return
    case 'again': {
      const seconds = Math.min(0.2 * 2 ** Math.min(row.attempts, 10), 30)
      await pool.query(
        `update operations.operation_commands set last_error = $2, next_try_at = clock_timestamp() + make_interval(secs => $3) where command_id = $1`,
        [command_id, sent.error, seconds],
      )
    }
  }
}

/** How many operations a turn asks the engine about. */
const DESCRIBED = 100
const NONE = '00000000-0000-0000-0000-000000000000'

/**
 * Checks operations that the engine has not moved for a minute: one that is gone or closed there is added to
 * engine_findings, on which the sweeper of operations acts; so is one that was lost and runs again. Each turn continues
 * `after` the last operation of the turn before, which it returns, because those found healthy do not change.
 */
export const reconcile = async (pool: pg.Pool, engine: Engine, after = NONE): Promise<string> => {
  const { rows } = await pool.query<{ operation_id: string; lost: boolean }>(
    `select o.operation_id, ${KNOWN_LOST} as lost from operations.operations o join operations.operation_control c using (operation_id)
     where not c.ended and not coalesce(${ELSEWHERE} $1, false) and o.updated_at < clock_timestamp() - interval '60 s'
       and exists (select 1 from operations.operation_commands k where k.operation_id = o.operation_id and k.kind = 'start' and k.status in ('delivered', 'applied'))
       and not exists (select 1 from operations.engine_findings f where f.operation_id = o.operation_id and f.at > clock_timestamp() - interval '10 min')
       and o.operation_id > $2 order by o.operation_id limit ${DESCRIBED}`,
    [engine.namespace, after],
  )
  for (const { operation_id, lost } of rows) {
    const found = await engine.describe(operation_id)
    if ((found === 'running') === lost)
      await pool.query('insert into operations.engine_findings (operation_id, found) values ($1, $2)', [
        operation_id,
        found,
      ])
  }
  return rows.length < DESCRIBED ? NONE : (rows.at(-1)?.operation_id ?? NONE)
}
