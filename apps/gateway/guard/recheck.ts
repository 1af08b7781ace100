import type { JwksClient } from '../../shared/jwt/jwks.ts'
import type { Logger } from '../../shared/telemetry.ts'
import type { Streams } from '../proxy/streams.ts'
import type { RedisGate } from './limits.ts'

const RECHECK_MS = 5000

/** Ends open streams whose tokens were signed by a key that is gone: a killed one. */
export const cutForeign = (streams: Streams, keys: JwksClient): void => {
  if (!keys.isReady()) return
  for (const { kid, cut } of streams.all()) if (!keys.get(kid)) cut()
}

/**
 * Ends open streams whose tokens Redis denies, or whose key is gone: a fresh proof ends older tokens without an event,
 * and NATS may be away. Returns how to stop it.
 */
export const recheckStreams = (
  streams: Streams,
  { redisGate: { denied }, jwks, log }: { redisGate: RedisGate; jwks: JwksClient; log: Logger },
): (() => void) => {
  let asking = false
  const recheck = async () => {
    if (asking) return
    asking = true
    try {
      cutForeign(streams, jwks)
      for (const { cut } of await denied(streams.all())) cut()
    } catch (error) {
      log.error({ err: error }, 'the tokens of open streams cannot be checked')
    } finally {
      asking = false
    }
  }
  const timer = setInterval(() => void recheck(), RECHECK_MS).unref()
  return () => clearInterval(timer)
}
