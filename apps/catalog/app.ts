import type { FastifyInstance, onRequestAsyncHookHandler } from 'fastify'
import { createFence, refuseHeld } from '../../db/restore.ts'
import { allow, requireScope, serviceAuth, userAuth } from '../shared/auth/http.ts'
import { createHttpApp } from '../shared/http/app.ts'
import { CATALOG_CODES } from '../shared/http/edge-codes.ts'
import { serveHealth } from '../shared/http/health.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { auditRoutes } from './audit.routes.ts'
import { bulkRoutes } from './bulk/routes.ts'
import { capabilitiesRoutes } from './capabilities/routes.ts'
import { recordDenied } from './command/audit.ts'
import type { CatalogDeps } from './deps.ts'
import { differenceRoutes } from './difference/routes.ts'
import { healthRoutes } from './health/routes.ts'
import { impactRoutes } from './impact/routes.ts'
import { importsRoutes } from './imports/routes.ts'
import { internalRoutes } from './internal.routes.ts'
import { operationsSummaryRoutes } from './operations/routes.ts'
import { projectionsRoutes } from './projections/routes.ts'
import { internalSide, publicSide } from './read/sides.ts'
import { relationshipsRoutes } from './relationships/routes.ts'
import { resourceReads, resourceWrites } from './resources/routes.ts'
import { searchRoutes } from './search/routes.ts'
import { graphsRoutes } from './topology/graphs.routes.ts'
import { topologyRoutes } from './topology/routes.ts'
import { relationshipTypesRoutes, typesRoutes } from './types.routes.ts'

const READS = [
  resourceReads,
  relationshipsRoutes,
  healthRoutes,
  operationsSummaryRoutes,
  typesRoutes,
  topologyRoutes,
  capabilitiesRoutes,
  graphsRoutes,
  impactRoutes,
  differenceRoutes,
  searchRoutes,
]

/** The two listeners of the catalog: the public API behind user tokens, the internal one behind service tokens. */
export const buildApp = async (deps: CatalogDeps) => {
  const { telemetry, trust } = deps
  const app = createHttpApp({
    telemetry,
    codes: CATALOG_CODES,
    openapi: {
      title: 'Signalbox resource catalog',
      description:
        'Resources, their types, relationships, topology, health and graphs. Every mutation takes an Idempotency-Key.',
      refusals: [CATALOG_CODES.text.status],
    },
  })
  const rejected = telemetry.counter('signalbox_token_rejected_total', 'Tokens refused.', ['cause'])
  await app.register(userAuth, {
    onRejected: (cause) => rejected.inc({ cause }),
    verifier: trust.verifier,
    principals: trust.principals,
    codes: CATALOG_CODES,
    onDenied: (req, error) => recordDenied(deps, req, error),
  })
  guardFirst(app as unknown as FastifyInstance)
  for (const routes of READS) await app.register(routes, { deps, side: publicSide(deps) })
  await app.register(resourceWrites, { deps })
  await app.register(bulkRoutes, { deps })
  await app.register(importsRoutes, { deps })
  await app.register(auditRoutes, { deps, path: '/v1/audit/catalog', guard: allow('audit:read', { kind: 'R' }) })

  const internal = createHttpApp({
    telemetry,
    internal: true,
    codes: CATALOG_CODES,
    // Audits only refusals of a known service, because the row carries its name.
    onRefused: async (req, error) => {
      if (error.status === 403 && req.service) await recordDenied(deps, req, error)
    },
    openapi: {
      title: 'Signalbox resource catalog, internal',
      description: 'Commands of control planes, the log of events, and all reads without the limits of a person.',
      listener: 'internal',
      refusals: [CATALOG_CODES.text.status],
    },
  })
  const fence = createFence(deps.db, 'catalog')
  const health = serveHealth(internal, telemetry, {
    postgres: { critical: true, run: () => deps.pool.query('select 1').then(() => undefined) },
    nats: { critical: false, run: deps.nats.check },
    restore: { critical: false, run: () => refuseHeld(fence) },
    graph: { critical: false, run: deps.graph.check },
  })
  await internal.register(async (guarded) => {
    await guarded.register(serviceAuth, {
      registry: trust.services,
      audience: audienceOf('catalog'),
      codes: CATALOG_CODES,
    })
    guardFirst(guarded as unknown as FastifyInstance)
    for (const routes of [...READS, relationshipTypesRoutes])
      await guarded.register(routes, { deps, side: internalSide })
    await guarded.register(internalRoutes, { deps })
    await guarded.register(projectionsRoutes, { deps })
    await guarded.register(auditRoutes, { deps, path: '/internal/v1/audit', guard: requireScope('catalog:admin') })
  })
  return { app, internal, health }
}

/** Guards refuse callers without permission before the body is read (catalog.md 7.4, order of checks). */
const guardFirst = (app: FastifyInstance): void => {
  app.addHook('onRoute', (route) => {
    const guards = [route.preHandler ?? []].flat() as unknown as onRequestAsyncHookHandler[]
    route.onRequest = [...guards, ...([route.onRequest ?? []].flat() as onRequestAsyncHookHandler[])]
    route.preHandler = []
  })
}
