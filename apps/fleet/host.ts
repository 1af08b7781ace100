import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { pick } from '../shared/data/pick.ts'
import { objectIn } from '../shared/data/pointer.ts'
import { certificateOf } from './certificate.ts'
import type { Effect, Host, Store } from './store.ts'

/** Connections of a host that takes traffic; they leave evenly while it drains. */
const CONNECTIONS = 24
const BODY_BYTES = 16_384

type Reply = { status: number; body: Record<string, unknown> }
type Act = {
  effect: string
  detail: string
  apply: (host: Host) => Host
  body: (before: Host, after: Host) => Record<string, unknown>
}

export const statusOf = (host: Host, now = Date.now()) => ({
  ...pick(host, 'hostname', 'release', 'traffic'),
  connections: host.traffic === 'in' ? CONNECTIONS : connectionsLeft(host, now),
})

const connectionsLeft = (host: Host, now: number): number => {
  const left = host.drained_at - now
  return left <= 0 ? 0 : Math.min(CONNECTIONS, Math.ceil(left / 250))
}

export const healthOf = (host: Host): { healthy: boolean; reason: string } =>
  host.faults.unhealthy_after_deploy && host.deployed > 0
    ? {
        healthy: false,
        reason: `release ${host.release} fails its start-up check: cannot open the session store: disk is read-only`,
      }
    : { healthy: true, reason: 'all checks pass' }

/** The metrics of a host that takes traffic, under a load of its own that hardly varies. Units: %, ms. */
export const metricsOf = (host: Host, now = Date.now()): Record<string, number> => {
  if (host.traffic === 'out') return {}
  // From 0 to 39, new every second and different for each host.
  const beat = [...`${host.hostname} ${Math.floor(now / 1000)}`].reduce(
    (sum, c) => (sum * 31 + c.charCodeAt(0)) % 40,
    0,
  )
  return {
    errors_pct: healthOf(host).healthy ? 0.1 + beat / 1000 : 12 + beat / 10,
    p95_ms: 40 + beat / 10 + (host.faults.delay_ms ?? 0),
  }
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length > 0 && value.length <= 64 ? value : undefined

/** The writes of a host. `unknown`: no such path; `invalid`: the body does not state what to do. */
const actOf = (path: string, body: Record<string, unknown>): Act | 'unknown' | 'invalid' => {
  switch (path) {
    case '/drain': {
      const seconds = body.seconds ?? 0
      if (typeof seconds !== 'number' || seconds < 0 || seconds > 600) return 'invalid'
      return {
        effect: 'drain',
        detail: `${seconds} s`,
        apply: (h) => ({ ...h, traffic: 'out', drained_at: Date.now() + seconds * 1000 }),
        body: (_b, after) => statusOf(after),
      }
    }
    case '/undrain':
      return {
        effect: 'undrain',
        detail: '',
        apply: (h) => ({ ...h, traffic: 'in', drained_at: 0 }),
        body: (_b, after) => statusOf(after),
      }
    case '/deploy': {
      const release = text(body.release)
      if (!release) return 'invalid'
      return {
        effect: 'deploy',
        detail: release,
        apply: (h) => ({ ...h, release, deployed: h.deployed + 1 }),
        body: (before, after) => ({ previous_release: before.release, release: after.release }),
      }
    }
    case '/restart':
      return { effect: 'restart', detail: '', apply: (h) => h, body: (_b, after) => statusOf(after) }
    case '/reinstall':
      return {
        effect: 'reinstall',
        detail: '',
        apply: (h) => ({ ...h, deployed: 0, faults: {} }),
        body: (_b, after) => statusOf(after),
      }
    case '/rotate-certificate':
      return {
        effect: 'rotate-certificate',
        detail: '',
        apply: (h) => ({ ...h, serial: h.serial + 1 }),
        body: (_b, after) => certificateOf(after.hostname, after.serial),
      }
    default:
      return 'unknown'
  }
}

const KEY = /^([0-9a-f-]{36}):(.+):(c?\d+)$/

/** A host's listener. Only writes need the token; they act once per Idempotency-Key and refuse an older fence. */
export const createHostServer = (store: Store, hostname: string, token: string | undefined): Server => {
  const read = (path: string): Reply => {
    const host = store.host(hostname)
    if (!host) return { status: 404, body: { error: 'this host was removed' } }
    if (path === '/' || path === '/status') return { status: 200, body: statusOf(host) }
    if (path === '/health') {
      const { healthy, reason } = healthOf(host)
      return {
        status: healthy ? 200 : 500,
        body: { status: healthy ? 'healthy' : 'unhealthy', release: host.release, reason },
      }
    }
    return { status: 404, body: { error: `${path} does not exist` } }
  }

  const write = async (path: string, req: IncomingMessage): Promise<Reply | 'swallow'> => {
    if (token && req.headers.authorization !== token)
      return { status: 401, body: { error: 'the token is missing or wrong' } }
    const body = await bodyOf(req)
    if (!body) return { status: 400, body: { error: 'the body must be a JSON object of at most 16 KiB' } }
    const faults = store.host(hostname)?.faults ?? {}
    if (faults.delay_ms) await delay(faults.delay_ms)
    if (faults.refuse_with) return { status: faults.refuse_with, body: { error: 'refused on demand' } }
    const reply = actOnce(path, req, body)
    return faults.swallow_answers ? 'swallow' : reply
  }

  const actOnce = (path: string, req: IncomingMessage, body: Record<string, unknown>): Reply => {
    const before = store.host(hostname)
    if (!before) return { status: 404, body: { error: 'this host was removed' } }
    const act = actOf(path, body)
    if (act === 'unknown') return { status: 404, body: { error: `${path} does not exist` } }
    if (act === 'invalid') return { status: 400, body: { error: `the body is not valid for ${path}` } }
    const effect = effectOf(hostname, req, act)
    if (effect.key) {
      const known = store.answer(hostname, effect.key, path)
      if (known) return { status: known.status, body: JSON.parse(known.body) as Record<string, unknown> }
      if (
        effect.fence !== null &&
        !store.takeFence(hostname, `${effect.operation_id}/${effect.node_id}`, effect.fence)
      ) {
        return { status: 409, body: { error: 'a newer fence was already used' } }
      }
    }
    const after = act.apply(before)
    const reply = { status: 200, body: act.body(before, after) }
    store.commit(after, effect, { path, status: reply.status, body: JSON.stringify(reply.body) }, store.saveHost)
    return reply
  }

  return createServer({ requestTimeout: 10_000, keepAliveTimeout: 5_000 }, (req, res) => {
    const path = (req.url ?? '/').split('?')[0] ?? '/'
    if (req.method === 'GET') return send(res, read(path))
    if (req.method !== 'POST') return send(res, { status: 405, body: { error: 'GET and POST only' } })
    write(path, req).then(
      (reply) => (reply === 'swallow' ? res.destroy() : send(res, reply)),
      (error: Error) => send(res, { status: 500, body: { error: error.message } }),
    )
  })
}

const effectOf = (hostname: string, req: IncomingMessage, act: Act): Effect => {
  const key = typeof req.headers['idempotency-key'] === 'string' ? req.headers['idempotency-key'] : null
  const [, operation_id = null, node_id = null, attempt = null] = KEY.exec(key ?? '') ?? []
  const fence = Number(req.headers['x-fencing-token'])
  return {
    hostname,
    operation_id,
    node_id,
    attempt,
    key,
    fence: Number.isSafeInteger(fence) && fence > 0 ? fence : null,
    effect: act.effect,
    detail: act.detail,
  }
}

const bodyOf = async (req: IncomingMessage): Promise<Record<string, unknown> | undefined> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return size === 0 ? {} : objectIn(Buffer.concat(chunks).toString('utf8'))
}

const send = (res: ServerResponse, { status, body }: Reply): void => {
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}
