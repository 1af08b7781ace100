import type { JsMsg, NatsConnection } from 'nats'
import type { SeenAgent } from '../../../db/operations/agents/rows.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { Work, type WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { AppError } from '../../shared/errors.ts'
import { EXECUTION_STREAM } from '../../shared/events/execution-stream.ts'
import type { Uses } from '../deps.ts'

type Asked = { labels: Record<string, string>; wait_ms: number }
type WorkDeps = Uses<'config' | 'nats'>

/** How long at most before work is offered again that did not fit this agent's labels and went back for others. */
const OTHERS_MS = 500
/** New work soon comes round to all agents that wait. */
const OTHERS_FIRST_MS = 30
const LEAST_WAIT_MS = 1000
/** Clocks differ by less than this. */
const OVERDUE_MS = 60_000

/** Why a caller may take no work of a pool. A stranger gets one answer, which does not tell whether the pool exists. */
export const refuseAgent = (
  { agentsOf, needsSandbox }: Uses<'agentsOf' | 'needsSandbox'>,
  { kind, username }: Pick<Caller, 'kind' | 'username'>,
  pool: string,
  { agent }: WorkRequest,
): AppError | undefined => {
  if (kind !== 'machine' || !agentsOf(pool).has(username))
    return new AppError('policy_denied', 'not_an_agent', `${username} is not an agent of the pool "${pool}".`)
  // One that leaves gets no work, and the list must not keep it.
  if (needsSandbox(pool) && agent?.sandbox === undefined && agent?.leaves === undefined)
    return new AppError(
      'policy_denied',
      'sandbox_needed',
      `The pool "${pool}" gives work to agents with a sandbox only.`,
    )
  return undefined
}

/** The agent as it describes itself; only pools whose work its machine may take count. */
export const seenOf = (
  { agentsOf }: Uses<'agentsOf'>,
  machine: string,
  pool: string,
  { agent, labels = {} }: WorkRequest,
): SeenAgent => ({
  ...{ agent: agent ? `${machine}/${agent.name}` : machine, machine, labels },
  pools: [...new Set([pool, ...(agent?.pools ?? [])])].filter((one) => agentsOf(one).has(machine)).sort(),
  complete: agent?.pools !== undefined,
  ...{
    version: agent?.version ?? null,
    concurrency: agent?.concurrency ?? null,
    draining: agent?.leaves === 'draining',
  },
})

/**
 * Gives a piece of a pool's work to an agent that asks (operations.md 7.4). It is acknowledged before the answer
 * leaves, so no two agents get it. If the answer is lost, no agent begins it, and it is handed over again half a minute
 * after `giving` has recorded it. That precedes the acknowledgment, so it also holds if this process dies in between.
 */
export const takeWork = async (
  deps: WorkDeps,
  pool: string,
  { labels, wait_ms }: Asked,
  gone: () => boolean,
  giving: (work: Work) => Promise<void>,
): Promise<Work | undefined> => {
  const nc = deps.nats.get()
  if (!nc) throw new AppError('internal_error', 'unavailable', 'The work stream is unavailable.')
  const consumer = await consumerOf(nc, `${deps.config.SIGNALBOX__NATS__PREFIX}${EXECUTION_STREAM}`, pool)
  const end = Date.now() + wait_ms
  while (consumer) {
    const message = await consumer.next({ expires: Math.max(end - Date.now(), LEAST_WAIT_MS) })
    if (!message) return undefined
    const work = workIn(message)
    if (!work) {
      message.term('it is no work')
      continue
    }
    // Its attempt ended when its time to begin was over: no agent could begin it.
    if (Date.parse(work.start_before) + OVERDUE_MS < Date.now()) {
      message.term('its time to begin is over')
      continue
    }
    const fits = Object.entries((work.labels ?? {}) as object).every(([name, value]) => labels[name] === value)
    if (!fits || gone()) message.nak(fits ? 0 : othersMs(message.info.redeliveryCount))
    else {
      await giving(work)
      if (await message.ackAck()) return work
    }
    if (Date.now() >= end || gone()) return undefined
  }
  return undefined
}

/** By chance: several pieces that came back in step would each go to the same wrong agent again and again. */
const othersMs = (times: number): number =>
  Math.round(Math.min(OTHERS_MS, OTHERS_FIRST_MS * times) * (0.5 + Math.random() / 2))

const check = compileSchema(Work)

/** Whoever may write to the stream could otherwise block a pool with a message that no agent can take. */
const workIn = (message: JsMsg): Work | undefined => {
  try {
    const work = message.json<Work>()
    return check(work).length === 0 ? work : undefined
  } catch {
    return undefined
  }
}

/** The workers create the consumer of a pool before its first work. */
const consumerOf = (nc: NatsConnection, stream: string, pool: string) =>
  nc
    .jetstream()
    .consumers.get(stream, pool)
    .catch((error: { api_error?: unknown }) => {
      if (error.api_error !== undefined) return undefined
      throw new AppError('internal_error', 'unavailable', 'The stream of work does not answer.')
    })
