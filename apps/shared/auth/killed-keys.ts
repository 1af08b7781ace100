import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { connectNats, type Envelope, prefixed } from '../events/events.ts'
import type { JwksClient } from '../jwt/jwks.ts'
import type { Logger } from '../telemetry.ts'

const RETRY_MS = 1000
/** How often the keys are read while no event would report a killed one. */
const DEAF_MS = 1000

type Keys = Pick<JwksClient, 'drop' | 'reload'>

/** Reloads token's keys each second while `isLive` says that no event would arrive. Returns a function that ends it. */
export const readKeysWhileDeaf = (keys: Keys, isLive: () => boolean): (() => void) => {
  const timer = setInterval(() => {
    if (!isLive()) void keys.reload()
  }, DEAF_MS).unref()
  return () => clearInterval(timer)
}

/**
 * Drops each killed key as soon as this connection reports it. Keys killed while it was away are missing from the key
 * set, which is reloaded at once. Returns how to stop it and whether it is live.
 */
export const hearKilledKeys = (nc: NatsConnection, prefix: string, keys: Keys) => {
  let live = !nc.isClosed()
  nc.subscribe(prefixed(prefix, 'auth.key.revoked.v1'), {
    callback: (error, message) => {
      if (error) return
      const { kid } = message.json<Envelope & { kid?: unknown }>()
      if (typeof kid === 'string') keys.drop(kid)
    },
  })
  void keys.reload()
  const watch = async () => {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') live = false
      if (type !== 'reconnect') continue
      live = true
      void keys.reload()
    }
    live = false
  }
  void watch()
  const stopReading = readKeysWhileDeaf(keys, () => live)
  return { isLive: () => live, stop: stopReading }
}

/** The same for an app that needs NATS only for this. NATS may be away at the start and at any later time. */
export const followKilledKeys = (options: {
  /** None: the keys are read each second. */
  url: string | undefined
  prefix: string
  name: string
  keys: Keys
  log: Logger
}): { stop: () => Promise<void> } => {
  const { url, prefix, name, keys, log } = options
  let stopped = false
  let connection: NatsConnection | undefined
  let hearing: { stop: () => void } = { stop: readKeysWhileDeaf(keys, () => connection !== undefined) }
  const connect = async () => {
    while (url !== undefined && !stopped && !connection) {
      try {
        connection = await connectNats(url, name)
      } catch (error) {
        log.debug({ err: error }, 'NATS is unavailable')
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    if (stopped || !connection) return connection?.close()
    hearing.stop()
    hearing = hearKilledKeys(connection, prefix, keys)
  }
  const connected = connect()
  return {
    stop: async () => {
      stopped = true
      hearing.stop()
      await connection?.close().catch(() => {})
      await Promise.race([connected, delay(RETRY_MS, undefined, { ref: false })])
    },
  }
}
