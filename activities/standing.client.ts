import { createJoiner } from '../apps/shared/process/lines.ts'
import { traceHeaders } from '../apps/shared/process/trace.ts'
import { audienceOf } from '../apps/shared/service/scopes.ts'
import type { ServiceSigner } from '../apps/shared/service/tokens.ts'
import type { Logger } from '../apps/shared/telemetry.ts'

/** A question may wait for the one before it; both fit between two heartbeats. */
const TIMEOUT_MS = 3000

/** At most this many gates in one request. */
const MOST_GATES = 1000

/** Asks operations to prove the voters of gates again. */
export const createStandingProver = (base_url: string, signer: ServiceSigner, log: Pick<Logger, 'warn'>) => {
  const ask = async (operation_id: string, gate_ids: readonly string[]): Promise<Away> => {
    try {
      const { status } = await fetch(new URL('/internal/v1/gate-standing', base_url), {
        method: 'POST',
        headers: {
          authorization: `Bearer ${signer(audienceOf('operations'))}`,
          'content-type': 'application/json',
          ...traceHeaders(),
        },
        body: JSON.stringify({ operation_id, gate_ids }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
      })
      if (status === 204) return undefined
      log.warn({ status, operation_id }, 'voters could not be proved')
      return status === 503 ? 'identity' : 'operations'
    } catch (error) {
      log.warn({ err: error, operation_id }, 'operations does not answer')
      return 'operations'
    }
  }
  // Nodes of an operation that start at the same time share a request.
  const prove = createJoiner(async (operation_id, asked: readonly (readonly string[])[]) => {
    const gate_ids = [...new Set(asked.flat())]
    if (gate_ids.length > MOST_GATES) return Promise.all(asked.map((own) => ask(operation_id, own)))
    const away = await ask(operation_id, gate_ids)
    return asked.map(() => away)
  })
  /** Tells which service is away, or `undefined` once the voters are proved; the claim decides for its node. */
  return { prove }
}
export type StandingProver = ReturnType<typeof createStandingProver>

type Away = 'identity' | 'operations' | undefined
