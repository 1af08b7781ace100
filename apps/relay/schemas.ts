import { prefixed, type StreamName } from '../shared/events/events.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import { followSecurity } from './audit/security.ts'
import { createSiem } from './audit/siem.ts'
import { createCommandSender, reconcile } from './commands/send.ts'
import { createPlaceGuard } from './commands/temporal.ts'
import type { RelayDeps } from './deps.ts'
import { checkBroker } from './events/broker.ts'
import { createPublisher } from './events/publisher.ts'
import { createRestoreGuard, type RestoreGuard } from './events/restore.ts'
import { BATCH, sequenceOnce } from './events/sequencer.ts'
import { endSessions } from './events/sessions.ts'
import type { Lead } from './leader.ts'
import { type Loop, startLoop } from './loop.ts'
import { republishRevocations } from './revocations.ts'

export const SCHEMAS = ['identity', 'credential', 'token', 'catalog', 'operations'] as const
export type Schema = (typeof SCHEMAS)[number]
const STREAM_OF: Record<Schema, StreamName | undefined> = {
  identity: 'AUTH',
  credential: undefined,
  token: 'AUTH',
  catalog: 'CATALOG',
  operations: 'OPERATIONS',
}

/** How often the publisher runs without a wake-up, in case a turn failed halfway: only this process wakes it. */
const UNWOKEN_MS = 2000
const MINUTE = 60_000
const SIEM_MS = 2000
const SECURITY_MS = 2000

export const createMeters = (telemetry: Telemetry, schemas: readonly Schema[]) => {
  const meters = {
    active: telemetry.gauge('signalbox_relay_active', 'Whether this process is the leader for the schema.', ['schema']),
    ahead: telemetry.gauge(
      'signalbox_broker_ahead',
      'Whether NATS knows later events than the database, after a restore.',
      ['schema'],
    ),
    rolledBack: telemetry.counter('signalbox_broker_rollback_total', 'Times that the broker had lost messages.', [
      'schema',
    ]),
    sent: telemetry.counter('signalbox_commands_sent_total', 'Commands sent to the engine, by kind and result.', [
      'kind',
      'result',
    ]),
  }
  for (const schema of schemas) {
    meters.rolledBack.inc({ schema }, 0)
    for (const gauge of [meters.active, meters.ahead]) gauge.set({ schema }, 0)
  }
  return meters
}
export type Meters = ReturnType<typeof createMeters>

/** One schema that this process leads. */
type Led = { deps: RelayDeps; schema: Schema; meters: Meters; guard: RestoreGuard | undefined }

/** Starts the loops of a schema: sequence, publish and broker check, and for operations the commands. */
export const leadSchema =
  (deps: RelayDeps, schema: Schema, meters: Meters): Lead =>
  async (epoch) => {
    const { config, telemetry, pool, nats } = deps
    const { log } = telemetry
    const prefix = config.SIGNALBOX__NATS__PREFIX
    const stream = STREAM_OF[schema]
    const guard =
      schema === 'credential'
        ? undefined
        : await createRestoreGuard({
            pool,
            schema,
            prefix,
            log,
            found: (held) => meters.ahead.set({ schema }, held ? 1 : 0),
          })
    const led: Led = { deps, schema, meters, guard }
    // Account events continue: their lost changes are left to the person who accepts the restore.
    const holds = schema === 'catalog' || schema === 'operations'
    const publisher = publisherOf(led)
    const publish = startLoop(`publish ${schema}`, log, UNWOKEN_MS, async () =>
      guard && !(await guard.clear(nats.get())) && holds ? false : publisher.turn(),
    )
    // A commit wakes the loop at once; the poll covers a lost wake-up.
    const sequence = startLoop(`sequence ${schema}`, log, config.RELAY__OUTBOX__POLL_MS, async () => {
      // After a restore, a number given before the broker was asked would be one of the lost ones. A broker that does
      // not answer holds up no number: read models of the app itself need only Postgres.
      if (holds && guard && !(await guard.clear(nats.get()).catch(() => !guard.isHeld()))) return false
      const numbered = await sequenceOnce(pool, schema, epoch)
      if (numbered > 0) publish.wake()
      return numbered === BATCH
    })
    const broker = stream && startBrokerCheck(led, stream)
    const loops: Record<string, Loop> = {
      sequence,
      publish,
      ...(broker && { broker }),
      ...(schema === 'operations' && { ...startCommands(deps, meters), ...startSiem(deps), ...startSecurity(deps) }),
    }
    const check = () => broker?.wake()
    const wakes = nats.hear(prefixed(prefix, `wake.${schema}`), sequence.wake)
    const ends = [wakes, nats.onConnect(check), nats.onReconnect(check)]
    meters.active.set({ schema }, 1)
    return {
      wake: sequence.wake,
      stop: async () => {
        meters.active.set({ schema }, 0)
        for (const end of ends) end()
        await Promise.all(Object.values(loops).map((loop) => loop.stop()))
        // The next leader says whether it still holds.
        meters.ahead.set({ schema }, 0)
      },
    }
  }

const publisherOf = ({ deps: { pool, config, telemetry, nats, session }, schema, guard }: Led) =>
  createPublisher({
    pool,
    schema,
    prefix: config.SIGNALBOX__NATS__PREFIX,
    log: telemetry.log,
    nats: nats.get,
    published: () => STREAM_OF[schema] !== undefined,
    ...(guard && { epoch: guard.epoch }),
    ...((schema === 'identity' || schema === 'credential') && { before: (row) => endSessions(session, schema, row) }),
  })

const startBrokerCheck = (
  { deps: { pool, config, telemetry, nats }, schema, meters }: Led,
  stream: StreamName,
): Loop => {
  const prefix = config.SIGNALBOX__NATS__PREFIX
  // Sessions have no outbox row: no number shows those that the broker took since the last check and then lost.
  let again = true
  const loop = startLoop(`broker ${schema}`, telemetry.log, MINUTE, async () => {
    const nc = nats.get()
    if (!nc) return false
    const lost = await checkBroker(pool, nc, prefix, schema, stream, telemetry.log)
    if (lost) meters.rolledBack.inc({ schema })
    again ||= lost
    if (!again || schema !== 'identity') return false
    again = false
    await republishRevocations(pool, nc, prefix).catch((error: unknown) => {
      again = true
      throw error
    })
    return false
  })
  const wake = () => {
    again = true
    loop.wake()
  }
  return { ...loop, wake }
}

/** Sends the audit rows to an external log system, if one is configured. */
export const startSiem = ({ siem: receiver, telemetry: { log }, pool }: RelayDeps): Record<string, Loop> => {
  if (!receiver) return {}
  const siem = createSiem({ ...receiver, pool, log })
  const loop = startLoop('siem', log, SIEM_MS, siem.turn)
  const stop = () => {
    siem.cut()
    return loop.stop().then(siem.close)
  }
  return { siem: { wake: loop.wake, stop } }
}

const startCommands = ({ config, telemetry, pool, nats, engine }: RelayDeps, { sent }: Meters) => {
  const { log } = telemetry
  const prefix = config.SIGNALBOX__NATS__PREFIX
  const outcomeSubject = prefixed(prefix, 'wake.operations_outcome')
  const refuse = createPlaceGuard(pool, engine, log)
  const sender = createCommandSender({
    pool,
    engine,
    config,
    log,
    notify: (told) => {
      try {
        nats.get()?.publish(outcomeSubject, JSON.stringify(told))
      } catch {
        // The connection is closing right now: the waiting caller polls.
      }
    },
    observe: (kind, result) => sent.inc({ kind, result }),
    refuse,
  })
  const loop = startLoop('commands', log, config.RELAY__COMMANDS__POLL_MS, sender.turn)
  sender.onFree(loop.wake)
  const deafen = nats.hear(prefixed(prefix, 'wake.operations'), loop.wake)
  const stop = () => {
    deafen()
    return loop.stop().then(sender.drain)
  }
  const commands: Loop = { wake: loop.wake, stop }
  let described: string | undefined
  const reconciling = startLoop('reconcile', log, MINUTE, async () => {
    await refuse()
    described = await reconcile(pool, engine, described)
    return false
  })
  return { commands, reconciling }
}

/** Tells people about changes to their accounts. */
const startSecurity = ({ telemetry, pool }: RelayDeps): Record<string, Loop> => ({
  security: startLoop('security', telemetry.log, SECURITY_MS, () => followSecurity(pool)),
})
