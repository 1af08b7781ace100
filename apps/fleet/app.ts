import Type from 'typebox'
import { Closed } from '../shared/contracts/shapes.ts'
import { notFound } from '../shared/errors.ts'
import { createHttpApp } from '../shared/http/app.ts'
import { CATALOG_CODES } from '../shared/http/edge-codes.ts'
import { serveHealth } from '../shared/http/health.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import { statusOf } from './host.ts'
import type { Hosts } from './hosts.ts'
import type { Host, Store } from './store.ts'

const Hostname = Type.Object({ hostname: Type.String({ pattern: '^[a-z0-9][a-z0-9.-]{0,62}$' }) })
const HostBody = Closed({
  resource_id: Type.Optional(Type.String({ maxLength: 128 })),
  region: Type.Optional(Type.String({ maxLength: 64 })),
  release: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
})
const FaultsBody = Closed({
  unhealthy_after_deploy: Type.Optional(Type.Boolean()),
  delay_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000 })),
  swallow_answers: Type.Optional(Type.Boolean()),
  refuse_with: Type.Optional(Type.Integer({ minimum: 400, maximum: 599 })),
})
const HostView = Type.Object(
  {
    hostname: Type.String(),
    release: Type.String(),
    traffic: Type.Enum(['in', 'out']),
    connections: Type.Integer(),
    resource_id: Type.Union([Type.String(), Type.Null()]),
    region: Type.Union([Type.String(), Type.Null()]),
    base_url: Type.String(),
    faults: FaultsBody,
  },
  { description: 'A host and where it listens.' },
)
const one = { 200: HostView }
const LedgerQuery = Type.Object({
  after: Type.Integer({ minimum: 0, default: 0 }),
  limit: Type.Integer({ minimum: 1, maximum: 10_000, default: 1000 }),
})

/** The control listener of the demo fleet: hosts, faults on demand, and the ledger of real effects. */
export const buildApp = ({ telemetry, store, hosts }: { telemetry: Telemetry; store: Store; hosts: Hosts }) => {
  const app = createHttpApp({ telemetry, codes: CATALOG_CODES })
  const health = serveHealth(app, telemetry, {
    store: { critical: true, run: async () => `${store.hosts().length} hosts` },
  })
  const view = (host: Host) => ({
    ...statusOf(host),
    resource_id: host.resource_id,
    region: host.region,
    base_url: hosts.urlOf(host),
    faults: host.faults,
  })
  const find = (hostname: string): Host => {
    const host = store.host(hostname)
    if (!host) throw notFound('host', hostname)
    return host
  }

  app.get('/hosts', async () => ({ items: store.hosts().map(view) }))
  app.get('/hosts/:hostname', {
    schema: { params: Hostname, response: one },
    handler: async (req) => view(find(req.params.hostname)),
  })
  app.put('/hosts/:hostname', {
    schema: { params: Hostname, body: HostBody, response: one },
    handler: async (req) => view(await hosts.put(req.params.hostname, req.body)),
  })
  app.delete('/hosts/:hostname', {
    schema: { params: Hostname, response: { 204: Type.Null() } },
    handler: async (req, reply) => {
      await hosts.remove(find(req.params.hostname).hostname)
      return reply.code(204).send(null)
    },
  })
  app.put('/hosts/:hostname/faults', {
    schema: { params: Hostname, body: FaultsBody, response: one },
    handler: async (req) => {
      const changed = { ...find(req.params.hostname), faults: req.body as Host['faults'] }
      store.saveHost(changed)
      return view(changed)
    },
  })
  app.get('/ledger', {
    schema: { querystring: LedgerQuery, response: { 200: Type.Object({ items: Type.Array(Type.Unknown()) }) } },
    handler: async (req) => ({ items: store.effects(req.query.after, req.query.limit) }),
  })
  return { app, health }
}
