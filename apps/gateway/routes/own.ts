import type { Redis } from 'ioredis'
import { permissionMissing } from '../../shared/auth/http.ts'
import type { Principals } from '../../shared/auth/principals.ts'
import { AppError, unavailable } from '../../shared/errors.ts'
import { type Checks, createReadiness, type Readiness } from '../../shared/http/health.ts'
import { PART_SILENT_S, PART_TTL_S, partsKey } from '../../shared/http/lifecycle.ts'
import type { AccessClaims } from '../../shared/jwt/claims.ts'

export type OwnAnswer = { status: number; body: unknown }

const READY_CACHE_MS = 1000
const MAX_PARTS = 500

type OwnDeps = { checks: Checks; isDraining: () => boolean; redis: Redis; prefix: string; principals: Principals }

export const createOwn = ({ checks, isDraining, redis, prefix, principals }: OwnDeps) => {
  const readiness = createReadiness(checks)
  let ready: { at: number; answer: Promise<Readiness> } | undefined

  /** Whether we can take traffic; details stay on the internal listener. Asks dependencies at most once a second. */
  const health = async (): Promise<OwnAnswer> => {
    if (isDraining()) return { status: 503, body: { status: 'unready' } }
    if (!ready || performance.now() - ready.at > READY_CACHE_MS) ready = { at: performance.now(), answer: readiness() }
    const { status }: { status: string } = await ready.answer
    return { status: status === 'unready' ? 503 : 200, body: { status } }
  }

  /** The last report of every process on its health (reliability.md 2.3). */
  const platformHealth = async (claims: AccessClaims | undefined): Promise<OwnAnswer> => {
    const principal = claims && (await principals.get(claims.sub))
    if (principal?.user.status !== 'ACTIVE' || principal.recovering || !principal.permissions.has('platform:read'))
      throw permissionMissing(['platform:read'])
    const parts = await readParts(redis, prefix).catch((error: unknown) => {
      throw unavailable('The health of the platform parts cannot be read.', error, 'unavailable')
    })
    return { status: 200, body: { parts, as_of: new Date().toISOString() } }
  }

  return async (path: string, claims: AccessClaims | undefined): Promise<OwnAnswer> => {
    if (path === '/health/live') return { status: 200, body: { status: 'live' } }
    if (path === '/health/ready') return health()
    if (path === '/api/v1/platform/health') return platformHealth(claims)
    throw new AppError('not_found', 'not_found', `There is no ${path}.`)
  }
}
export type Own = ReturnType<typeof createOwn>

const readParts = async (redis: Redis, prefix: string): Promise<unknown[]> => {
  const start = `${prefix}ops:part:`
  const names = await redis.zrevrange(partsKey(prefix), 0, MAX_PARTS - 1)
  // Every app may write names, and this process may read more keys than they.
  const sorted = names.filter((key) => key.startsWith(start)).sort()
  const read = redis.pipeline()
  for (const key of sorted) read.get(key).ttl(key)
  const values = (await read.exec()) ?? []
  const failed = values.find(([error]) => error)
  if (failed) throw failed[0]
  return sorted.flatMap((key, at) => {
    const [app, ...instance] = key.slice(start.length).split(':')
    const [value, ttl] = [values[2 * at]?.[1], values[2 * at + 1]?.[1]]
    if (typeof value !== 'string') return []
    const said = { app, instance: instance.join(':'), ...(JSON.parse(value) as object) }
    // The remaining time to live shows when it last reported, whatever the clocks say.
    const silent = typeof ttl === 'number' && ttl >= 0 && ttl < PART_TTL_S - PART_SILENT_S
    return [silent ? { ...said, status: 'silent' } : said]
  })
}
