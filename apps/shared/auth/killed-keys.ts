import type { NatsConnection } from 'nats'
import { type Envelope, prefixed } from '../events/events.ts'
import { holdNats } from '../events/holder.ts'
import type { JwksClient } from '../jwt/jwks.ts'
import type { Logger } from '../telemetry.ts'

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
 * set, which is reloaded at once. Returns how to stop it.
 */
const hearKilledKeys = (nc: NatsConnection, prefix: string, keys: Keys) => {
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
  return readKeysWhileDeaf(keys, () => live)
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
  let stop = readKeysWhileDeaf(keys, () => false)
  const nats = url === undefined ? undefined : holdNats(url, name, log)
  nats?.onConnect((nc) => {
    stop()
    stop = hearKilledKeys(nc, prefix, keys)
  })
  return {
    stop: async () => {
      stop()
      await nats?.close()
    },
  }
}
