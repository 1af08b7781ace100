import type { Redis } from 'ioredis'
import { AppError } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry.ts'
import type { Kind, LimitClass } from '../routes/table.ts'

const SERVERS = ['postgres', 'redis', 'nats', 'temporal'] as const
const READ_MS = 5000
/** Percent of free space: below the first it is reported, below the others acts are refused (reliability.md 2.2). */
export const LOW = 10
export const REFUSE_ARMING = 5
export const REFUSE_ALL = 2

const LOGINS: ReadonlySet<LimitClass> = new Set(['token', 'login', 'page', 'sso'])

/** Whether an act is refused at this share of free disk: first arming and writing, finally everything but reading. */
const isRefused = (free: number | undefined, { kind, class: limit }: { kind: Kind; class: LimitClass }): boolean => {
  if (free === undefined || free >= REFUSE_ARMING) return false
  const arming = kind === 'A' || kind === 'W'
  // What runs must be able to report; without its heartbeats it would be interrupted.
  if (limit === 'work') return arming
  return free < REFUSE_ALL ? kind !== 'R' || LOGINS.has(limit) : arming
}

/**
 * How full the servers' disks are, as their operator reports every 10 s in `ops:disk:<server>` (percent free, 60 s of
 * life). Silence is normal. A full disk stops a database for good, so acts are refused earlier.
 */
export const createDiskWatch = ({ redis, prefix, log }: { redis: Redis; prefix: string; log: Logger }) => {
  const keys = SERVERS.map((server) => `${prefix}ops:disk:${server}`)
  let free: number | undefined
  const read = async () => {
    const values = await redis.mget(keys).catch(() => undefined)
    if (!values) return
    const before = free
    const known = values.flatMap((value) => (value === null || !Number.isFinite(Number(value)) ? [] : [Number(value)]))
    free = known.length > 0 ? Math.min(...known) : undefined
    if (free !== undefined && free < LOW && (before ?? 100) >= LOW)
      log.error({ free_percent: free }, 'the disk under a server is almost full')
  }
  const timer = setInterval(() => void read(), READ_MS).unref()
  return {
    read,
    /** In percent; NaN while no one reports it. */
    free: (): number => free ?? Number.NaN,
    /** Throws if the act must leave the disk its last space. */
    refuse: (route: { kind: Kind; class: LimitClass }): void => {
      if (isRefused(free, route)) throw diskFull()
    },
    /** For readiness: low is degraded, not unready, which would take stopping away too. */
    check: async () => {
      if (free !== undefined && free < LOW) throw new Error(`${free} % of the disk under a server is free`)
    },
    close: () => clearInterval(timer),
  }
}
export type DiskWatch = ReturnType<typeof createDiskWatch>

const diskFull = () =>
  new AppError(
    'unavailable',
    'overloaded',
    'The disk under a server is almost full: writes are refused until there is space.',
    {
      retryable: true,
      retry_after_ms: 5000,
      hint: 'Contact the operator of the platform. Repeat the same request with the same Idempotency-Key later.',
    },
  )
