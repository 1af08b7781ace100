import { prefixed, type StreamName } from '../shared/events/events.ts'
import { createHttpApp, OPERATIONS_CODES } from '../shared/http/app.ts'
import { serveHealth } from '../shared/http/health.ts'
import { createAnchors } from './audit/anchors.ts'
import { sealAudit } from './audit/seal.ts'
import { createCommandSender, reconcile } from './commands/send.ts'
import type { RelayDeps } from './deps.ts'
import { checkBroker } from './events/broker.ts'
import { createPublisher } from './events/publisher.ts'
import { createRestoreGuard } from './events/restore.ts'
import { BATCH, sequenceOnce } from './events/sequencer.ts'
import { endSessions } from './events/sessions.ts'
import { startLeadership } from './leader.ts'
import { type Loop, startLoop } from './loop.ts'
import { republishRevocations, startRevocations } from './revocations.ts'

const SCHEMAS = ['identity', 'credential', 'token', 'catalog', 'operations'] as const
type Schema = (typeof SCHEMAS)[number]
const STREAM_OF: Record<Schema, StreamName | undefined> = {
  identity: 'AUTH',
  credential: undefined,
  token: 'AUTH',
  catalog: 'CATALOG',
  operations: 'OPERATIONS',
}

/** What only this process wakes is looked after all the same, in case a turn failed half-way. */
const UNWOKEN_MS = 2000
const MINUTE = 60_000
/** An audit row is chained within 5 s (reliability.md 5.4). */
const SEAL_MS = 2000

/** Starts all loops: per schema sequence, publish and broker check; commands to Temporal; revocations from Redis. */
export const startRelay = (deps: RelayDeps, schemas: readonly Schema[] = SCHEMAS) => {
  const { config, telemetry, pool, nats, engine } = deps
  const { log } = telemetry
  const prefix = config.SIGNALBOX__NATS__PREFIX
  // A commit wakes the loops at once; the poll is for when the wake is lost.
  const poll_ms = config.RELAY__OUTBOX__POLL_MS
  const active = telemetry.gauge('relay_active', 'Whether this process leads the schema.', ['schema'])
  const ahead = telemetry.gauge('broker_ahead', 'Whether NATS knows later events than the database, after a restore.', [
    'schema',
  ])
  const rolledBack = telemetry.counter('broker_rollback_total', 'Times that the broker had lost messages.', ['schema'])
  for (const schema of schemas) rolledBack.inc({ schema }, 0)
  const sent = telemetry.counter('commands_sent_total', 'Commands sent to the engine, by kind and result.', [
    'kind',
    'result',
  ])

  const leadSchema = (schema: Schema) => async (epoch: number) => {
    const stream = STREAM_OF[schema]
    const guard =
      schema === 'credential'
        ? undefined
        : await createRestoreGuard({ pool, schema, prefix, log, found: (held) => ahead.set({ schema }, held ? 1 : 0) })
    const publisher = createPublisher({
      pool,
      schema,
      prefix,
      log,
      nats: nats.get,
      published: () => stream !== undefined,
      ...(guard && { epoch: guard.epoch }),
      ...((schema === 'identity' || schema === 'credential') && {
        before: (row) => endSessions(deps.session, schema, row),
      }),
    })
    const loops: Loop[] = []
    // Accounts go on: what was lost of them is for the person who accepts.
    const holds = schema === 'catalog' || schema === 'operations'
    const publish = startLoop(`publish ${schema}`, log, UNWOKEN_MS, async () =>
      guard && !(await guard.clear(nats.get())) && holds ? false : publisher.turn(),
    )
    const sequence = startLoop(`sequence ${schema}`, log, poll_ms, async () => {
      if (holds && guard?.isHeld()) return false
      const numbered = await sequenceOnce(pool, schema, epoch)
      if (numbered > 0) publish.wake()
      return numbered === BATCH
    })
    loops.push(sequence, publish)
    if (stream) {
      loops.push(
        startLoop(`broker ${schema}`, log, MINUTE, async () => {
          const nc = nats.get()
          if (!nc) return false
          const lost = await checkBroker(pool, nc, prefix, schema, stream, log)
          if (lost) rolledBack.inc({ schema })
          // Sessions have no outbox row; what the broker lost of them stands in Postgres.
          if (lost && schema === 'identity') await republishRevocations(pool, nc, prefix)
          return false
        }),
      )
    }
    if (schema === 'operations') loops.push(...startCommands())
    nats.onConnect((nc) => {
      nc.subscribe(prefixed(prefix, `wake.${schema}`), { callback: () => sequence.wake() })
    })
    nats.onReconnect(() => {
      for (const loop of loops.slice(2, 3)) loop.wake()
    })
    active.set({ schema }, 1)
    return {
      wake: sequence.wake,
      stop: async () => {
        active.set({ schema }, 0)
        await Promise.all(loops.map((loop) => loop.stop()))
      },
    }
  }

  const startCommands = (): Loop[] => {
    const outcomeSubject = prefixed(prefix, 'wake.operations_outcome')
    const sender = createCommandSender({
      pool,
      engine,
      config,
      log,
      notify: (told) => {
        try {
          nats.get()?.publish(outcomeSubject, JSON.stringify(told))
        } catch {
          // a connection that closes at this moment; who waits will see it
        }
      },
      observe: (kind, result) => sent.inc({ kind, result }),
    })
    const loop = startLoop('commands', log, config.RELAY__COMMANDS__POLL_MS, sender.turn)
    sender.onFree(loop.wake)
    nats.onConnect((nc) => {
      nc.subscribe(prefixed(prefix, 'wake.operations'), { callback: () => loop.wake() })
    })
    const reconciling = startLoop('reconcile', log, MINUTE, async () => {
      await reconcile(pool, engine)
      return false
    })
    return [{ wake: loop.wake, stop: () => loop.stop().then(sender.drain) }, reconciling]
  }

  const leaders = schemas.map((schema) => startLeadership(config.RELAY__DATABASE__URL, schema, log, leadSchema(schema)))
  const revocations = startRevocations(deps)
  const seals = startLoop('seal audit', log, SEAL_MS, () => sealAudit(pool))
  const anchors = createAnchors({
    pool,
    nats,
    prefix,
    key: deps.audit_key,
    file: config.RELAY__AUDIT__ANCHOR_FILE,
    interval_ms: config.RELAY__AUDIT__ANCHOR_S * 1000,
  })
  const anchoring = startLoop('anchor audit', log, Math.min(MINUTE, config.RELAY__AUDIT__ANCHOR_S * 1000), anchors.turn)
  const age = telemetry.gauge('audit_anchor_age_seconds', 'Since the heads of the audit logs were last signed.')
  Object.assign(age, { collect: () => age.set(anchors.age_s()) })
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
    redis: { critical: false, run: () => redis.ping() },
    nats: { critical: false, run: async () => (nats.get() ? undefined : Promise.reject(new Error('not connected'))) },
    temporal: { critical: false, run: engine.health },
  })
  return { app, health }
}
