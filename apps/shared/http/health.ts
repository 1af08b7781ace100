import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import Type, { type Static } from 'typebox'
import { exposition, type Telemetry } from '../telemetry.ts'
import { measureCertificates } from '../tls/pairs.ts'
import { measureTurns } from '../turns.ts'
import type { HttpApp } from './app.ts'

/** One dependency of an app. `critical`: without it the app is unready; otherwise it is only degraded. */
export type Check = { critical: boolean; run: () => Promise<string | undefined | unknown> }
export type Checks = Record<string, Check>

/** A check's `run`: fails with this sentence while the condition does not hold. */
export const holds = (condition: () => boolean, fault: string) => async (): Promise<void> => {
  if (!condition()) throw new Error(fault)
}

const Ready = Type.Object({
  status: Type.Enum(['ready', 'degraded', 'unready']),
  checks: Type.Record(
    Type.String(),
    Type.Object({ ok: Type.Boolean(), ms: Type.Number(), detail: Type.Optional(Type.String()) }),
  ),
})

export type Readiness = Static<typeof Ready>

const CHECK_MS = 1000
/** The time between "not ready" and the closing of the first listener (reliability.md 2.6). */
const LEAD_MS = 2000

/** A dependency that is away briefly must not divert traffic: it would be away elsewhere, too. */
const RED_AFTER_MS = 5000

/**
 * The readiness of one process: runs all checks in parallel, each within a second. A critical check that once passed
 * makes the app unready after 5 s of failure, one that never passed at once. One success makes it ready again
 * (reliability.md 2.3).
 */
export const createReadiness = (checks: Checks, monotonic: () => number = () => performance.now()) => {
  const were_well = new Set<string>()
  const failing_since = new Map<string, number>()

  const isRed = (name: string): boolean => {
    const since = failing_since.get(name) ?? monotonic()
    failing_since.set(name, since)
    return !were_well.has(name) || monotonic() - since >= RED_AFTER_MS
  }

  return async (): Promise<Readiness> => {
    const results: Readiness['checks'] = {}
    let status: Readiness['status'] = 'ready'
    await Promise.all(
      Object.entries(checks).map(async ([name, check]) => {
        const started = performance.now()
        const { ok, detail } = await outcomeOf(check)
        results[name] = { ok, ms: Math.round(performance.now() - started), ...(detail && { detail }) }
        if (ok) {
          were_well.add(name)
          failing_since.delete(name)
        } else if (check.critical && isRed(name)) status = 'unready'
        else if (status === 'ready') status = 'degraded'
      }),
    )
    return { status, checks: results }
  }
}

const outcomeOf = async (check: Check): Promise<{ ok: boolean; detail?: string | undefined }> => {
  const late = new Promise<{ ok: boolean; detail: string }>((resolve) =>
    setTimeout(() => resolve({ ok: false, detail: `no answer in ${CHECK_MS} ms` }), CHECK_MS).unref(),
  )
  const run = check.run().then(
    (detail) => ({ ok: true, detail: typeof detail === 'string' ? detail : undefined }),
    (error: Error) => ({ ok: false, detail: error.message }),
  )
  return Promise.race([run, late])
}

/** Names the answering process, so that a starter does not mistake another process's answer for its own. */
export const INSTANCE_HEADER = 'signalbox-instance'

/** Adds /health/live, /health/startup, /health/ready and /metrics to an app's internal listener (reliability.md 2.3). */
export const serveHealth = (app: HttpApp, telemetry: Telemetry, checks: Checks) => {
  measureCertificates(telemetry)
  measureTurns(telemetry)
  let draining = false
  const readiness = createReadiness(checks)
  const read = async (): Promise<Readiness> => (draining ? { status: 'unready', checks: {} } : readiness())
  app.get('/health/live', { schema: { hide: true } }, async () => ({ status: 'live' }))
  app.get('/health/startup', { schema: { hide: true } }, async () => ({ status: 'started' }))
  app.get('/health/ready', { schema: { hide: true, response: { 200: Ready, 503: Ready } } }, async (_req, reply) => {
    const answer = await read()
    reply.header(INSTANCE_HEADER, `${hostname()}-${process.pid}`)
    return reply.code(answer.status === 'unready' ? 503 : 200).send(answer)
  })
  app.get('/metrics', { schema: { hide: true } }, async (req, reply) => {
    const { type, text } = await exposition(telemetry, req.headers.accept)
    return reply.type(type).send(text)
  })
  return {
    /**
     * From here on the app reports that it is not ready. Resolves when the senders of work have had time to notice:
     * after 2 s in production, at once in development.
     */
    drain: async (): Promise<void> => {
      draining = true
      await delay(process.env.NODE_ENV === 'production' ? LEAD_MS : 0)
    },
    read,
  }
}
