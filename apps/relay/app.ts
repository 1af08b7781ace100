import { checkRedis } from '../../db/redis/redis.ts'
import { createHttpApp } from '../shared/http/app.ts'
import { OPERATIONS_CODES } from '../shared/http/edge-codes.ts'
import { holds, serveHealth } from '../shared/http/health.ts'
import { createAnchors } from './audit/anchors.ts'
import { sealAudit } from './audit/seal.ts'
import { refuseOther } from './commands/temporal.ts'
import type { RelayDeps } from './deps.ts'
import { startLeadership } from './leader.ts'
import { startLoop } from './loop.ts'
import { startRevocations } from './revocations.ts'
import { createMeters, leadSchema, SCHEMAS, type Schema } from './schemas.ts'

const MINUTE = 60_000
/** How often audit rows are chained; each must be chained within 5 s (reliability.md 5.4). */
const SEAL_MS = 2000

/** Starts all loops. Per schema: sequence, publish, broker check. Also Temporal commands, Redis revocations, audit. */
export const startRelay = (deps: RelayDeps, schemas: readonly Schema[] = SCHEMAS) => {
  const { config, telemetry, pool, nats } = deps
  const { log } = telemetry
  const meters = createMeters(telemetry, schemas)
  const leaders = schemas.map((schema) =>
    startLeadership(config.RELAY__DATABASE__URL, schema, log, leadSchema(deps, schema, meters)),
  )
  const revocations = startRevocations(deps)
  const seals = startLoop('seal audit', log, SEAL_MS, () => sealAudit(pool))
  const anchors = createAnchors({
    pool,
    nats,
    prefix: config.SIGNALBOX__NATS__PREFIX,
    key: deps.audit_key,
    file: config.RELAY__AUDIT__ANCHOR_FILE,
    interval_ms: config.RELAY__AUDIT__ANCHOR_S * 1000,
  })
  const anchoring = startLoop('anchor audit', log, Math.min(MINUTE, config.RELAY__AUDIT__ANCHOR_S * 1000), anchors.turn)
  const help = 'Since the heads of the audit logs were last signed.'
  telemetry.reading('signalbox_audit_anchor_age_seconds', help, anchors.age_s)
  return {
    stop: async () => {
      await Promise.all([...leaders.map((leader) => leader.stop()), revocations.stop(), seals.stop(), anchoring.stop()])
    },
  }
}

/** The internal listener: health and metrics only; the relay has no API. */
export const buildApp = ({ telemetry, pool, redis, nats, engine }: RelayDeps) => {
  const app = createHttpApp({ telemetry, codes: OPERATIONS_CODES, internal: true })
  const health = serveHealth(app, telemetry, {
    postgres: { critical: true, run: () => pool.query('select 1') },
    redis: { critical: false, run: () => checkRedis(redis) },
    nats: { critical: false, run: holds(() => nats.get() !== undefined, 'not connected') },
    temporal: { critical: false, run: () => engine.health().then(() => refuseOther(pool, engine)) },
  })
  return { app, health }
}
