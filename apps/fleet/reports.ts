import { uuidv7 } from '../shared/ids.ts'
import { startLoop } from '../shared/process/repeat.ts'
import type { Logger } from '../shared/telemetry.ts'
import { healthOf, metricsOf } from './host.ts'
import type { Host, Store } from './store.ts'

const LOOK_MS = 1000

type ReportsDeps = { store: Store; catalog_url: string; token: () => Promise<string>; every_s: number; log: Logger }

/**
 * Reports each host's health to the catalog, so that people see it live: changes within a second, everything every
 * `every_s`. If the catalog is unavailable, the next round tries again.
 */
export const startReports = ({ store, catalog_url, token, every_s, log }: ReportsDeps) => {
  let stopped = false
  let failing = false
  let told_all = Number.NEGATIVE_INFINITY
  const told = new Map<string, string>()

  const report = async () => {
    const all = performance.now() - told_all >= every_s * 1000
    const begun = performance.now()
    const due = store
      .hosts()
      .filter((host) => host.resource_id && (all || told.get(host.hostname) !== healthOf(host).reason))
    if (due.length === 0) return
    const bearer = await token()
    for (const host of due) {
      if (!host.resource_id || stopped) continue
      const { reason } = healthOf(host)
      if (await post({ catalog_url, bearer, every_s }, host, host.resource_id)) told.set(host.hostname, reason)
    }
    if (all) told_all = begun
  }
  const turn = async () => {
    await report()
    failing = false
  }
  const failed = (err: unknown) => {
    if (!failing) log.warn({ err }, 'health reports do not reach the catalog')
    failing = true
  }
  const loop = startLoop('report health', turn, { every_ms: LOOK_MS, failed })
  return {
    stop: (): Promise<void> => {
      stopped = true
      return loop.stop()
    },
  }
}

/**
 * Sends one observation. False if the catalog does not know the host, which may be about to be registered. One that it
 * refuses, such as of a retired host, counts as told: it concerns no other host, and is sent again with all.
 */
const post = async (
  { catalog_url, bearer, every_s }: { catalog_url: string; bearer: string; every_s: number },
  host: Host,
  resource_id: string,
): Promise<boolean> => {
  const { healthy, reason } = healthOf(host)
  const id = uuidv7()
  const body = {
    command_id: id,
    idempotency_key: id,
    resource_id,
    source: 'fleet',
    check_key: 'http',
    status: healthy ? 'healthy' : 'unhealthy',
    observed_at: new Date().toISOString(),
    ttl_s: Math.max(60, every_s * 3),
    summary: reason,
    attributes: metricsOf(host),
  }
  const url = `${catalog_url}/internal/v1/resources/${encodeURIComponent(resource_id)}/health-observations`
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` }
  const init = { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(5000) }
  const reply = await fetch(url, init)
  await reply.body?.cancel()
  if (!reply.ok && ![404, 422].includes(reply.status)) throw new Error(`the catalog answered ${reply.status}`)
  return reply.status !== 404
}
