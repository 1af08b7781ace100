import { type Agent, request } from 'undici'
import type { Destination } from '../../../../db/operations/notifications/destinations.ts'
import { retryAfterMs } from '../../../shared/contracts/client/problem.ts'
import { Denied } from '../../../shared/web/agent.ts'

export const TIMEOUT_MS = 10_000

/** The result of a try. `final`: it is not retried; `gone`: nothing else is sent there either. */
export type Sent = { error?: string; final?: true; gone?: true; retry_after_ms?: number | undefined }
/** The unsealed parts of a destination that are needed to reach it. */
export type Reach = { delivery_id: string; kind: Destination['kind']; address: string; secrets: readonly string[] }

/** Sends one POST. It follows no redirect and keeps no answer. The statuses in `gone` end the destination. */
export const post = async (
  agent: Agent,
  url: string,
  headers: Record<string, string>,
  body: string | Buffer,
  gone: readonly number[],
): Promise<Sent> => {
  try {
    const answer = await request(url, {
      method: 'POST',
      headers: { 'user-agent': 'signalbox', ...headers },
      body,
      dispatcher: agent,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      reset: true,
    })
    await answer.body.dump({ limit: 65_536 })
    const { statusCode: status } = answer
    if (status >= 200 && status < 300) return {}
    const error = `It answered ${status}.`
    if (gone.includes(status)) return { error, final: true, gone: true }
    return { error, retry_after_ms: retryAfterMs([answer.headers['retry-after']].flat()[0]) }
  } catch (error) {
    if (error instanceof Denied) return { error: 'Its address may not be called.', final: true }
    return { error: (error as Error).name === 'TimeoutError' ? 'It does not answer.' : 'It cannot be reached.' }
  }
}
