import type { JsMsg, NatsConnection } from 'nats'
import type { Caller } from '../../shared/auth/caller.ts'
import { Work } from '../../shared/contracts/engine/executions.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { AppError } from '../../shared/errors.ts'
import { EXECUTION_STREAM } from '../../shared/events/execution-stream.ts'
import type { Uses } from '../deps.ts'

type Asked = { labels: Record<string, string>; wait_ms: number }
type WorkDeps = Uses<'agentsOf' | 'config' | 'nats'>

/** How long before work is offered again that did not fit this agent's labels and went back for others. */
const OTHERS_MS = 500
const LEAST_WAIT_MS = 1000

/**
 * Gives a piece of a pool's work to an agent that asks (operations.md 7.4). It is acknowledged before the answer
 * leaves, so no two agents get it. If the answer is lost, the work is given out again after its time to begin.
 */
export const takeWork = async (
  deps: WorkDeps,
  caller: Pick<Caller, 'kind' | 'username'>,
  pool: string,
  { labels, wait_ms }: Asked,
  gone: () => boolean,
): Promise<Work | undefined> => {
  // One answer for all: a caller who may not take from a pool does not learn whether it exists.
  if (caller.kind !== 'machine' || !deps.agentsOf(pool).has(caller.username))
    throw new AppError('policy_denied', 'not_an_agent', `${caller.username} is not an agent of the pool "${pool}".`)
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
    const fits = Object.entries((work.labels ?? {}) as object).every(([name, value]) => labels[name] === value)
    if (!fits || gone()) message.nak(fits ? 0 : OTHERS_MS)
    else if (await message.ackAck()) return work
    if (Date.now() >= end || gone()) return undefined
  }
  return undefined
}

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
