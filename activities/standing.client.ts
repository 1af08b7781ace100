import { traceHeaders } from '../apps/shared/process/trace.ts'
import { audienceOf } from '../apps/shared/service/scopes.ts'
import type { ServiceSigner } from '../apps/shared/service/tokens.ts'
import type { Logger } from '../apps/shared/telemetry.ts'

const TIMEOUT_MS = 5000

/** Asks operations to prove the voters of gates again. */
export const createStandingProver = (base_url: string, signer: ServiceSigner, log: Pick<Logger, 'warn'>) => ({
  /** Returns which service is away, or `undefined` once the voters are proved; the claim decides for its node. */
  prove: async (operation_id: string, gate_ids: readonly string[]): Promise<'identity' | 'operations' | undefined> => {
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
  },
})
export type StandingProver = ReturnType<typeof createStandingProver>
