import type { Logger } from '../../shared/telemetry.ts'
import type { Streams } from '../proxy/streams.ts'
import type { RedisGate } from './limits.ts'

const RECHECK_MS = 5000

/**
 * Ends open streams whose tokens Redis denies: a fresh proof ends older tokens without an event, and NATS may be away.
 * Returns how to stop it.
 */
export const recheckStreams = (streams: Streams, { denied }: RedisGate, log: Logger): (() => void) => {
  let asking = false
  const recheck = async () => {
    if (asking) return
    asking = true
    try {
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
