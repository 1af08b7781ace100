import type { FastifyInstance } from 'fastify'
import { serviceAuth, userAuth } from '../shared/auth/http.ts'
import { JSON_LIMITS } from '../shared/data/json.ts'
import { createHttpApp, type HttpApp } from '../shared/http/app.ts'
import { OPERATIONS_CODES } from '../shared/http/edge-codes.ts'
import { serveHealth } from '../shared/http/health.ts'
import type { Routes } from '../shared/http/routes.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { artifactsRoutes } from './agents/artifacts.routes.ts'
import { type AgentBase, executionsRoutes } from './agents/executions.routes.ts'
import { beginAttempts, measureAgents } from './agents/metrics.ts'
import { workRoutes } from './agents/work.routes.ts'
import { freezesRoutes } from './calendar/freezes.routes.ts'
import { peopleFreezesRoutes } from './calendar/people.routes.ts'
import { calendarRoutes } from './calendar/routes.ts'
import { projectionRoutes } from './catalog/routes.ts'
import { auditDenial } from './command/command.ts'
import type { OperationsDeps } from './deps.ts'
import { engineRoutes } from './engine.routes.ts'
import { losingRoutes } from './gates/losing.ts'
import { gatesRoutes } from './gates/routes.ts'
import { auditRoutes } from './history/audit.routes.ts'
import { historyRoutes } from './history/routes.ts'
import { intentsRoutes } from './intents/routes.ts'
import { internalRoutes, standingRoutes } from './internal.routes.ts'
import { interventionsRoutes } from './interventions/routes.ts'
import { meRoutes } from './me.routes.ts'
import { countKeys, measureOpen } from './metrics.ts'
import { nodesRoutes } from './nodes/routes.ts'
import { deliveriesRoutes } from './notifications/deliveries.routes.ts'
import { destinationsRoutes } from './notifications/destinations.routes.ts'
import { pushRoutes } from './notifications/push.routes.ts'
import { notificationsRoutes } from './notifications/routes.ts'
import { operationsRoutes } from './operations/routes.ts'
import { overviewRoutes } from './overview/routes.ts'
import { packsRoutes } from './packs/routes.ts'
import { patchesRoutes } from './patches/routes.ts'
import { outlineOf } from './plans/outline.ts'
import { plansRoutes } from './plans/routes.ts'
import { hooksRoutes } from './schedules/hooks.routes.ts'
import { schedulesRoutes } from './schedules/routes.ts'
import { signalsRoutes } from './signals/routes.ts'
import { eventsRoutes } from './stream/routes.ts'
import { createTail } from './stream/tail.ts'
import { checksOf } from './upkeep/health.ts'
import { waitingRoutes } from './waiting/routes.ts'

/** The largest public body is an intent's 2,000-node graph; event batches on the internal listener may be larger. */
const PUBLIC_BODY = 4_194_304
const INTERNAL_BODY = 8_388_608
/** An artifact of 256 MiB over a slow link; the agent gives up a little earlier. */
const UPLOAD_MS = 330_000
const LIMITS = { ...JSON_LIMITS, keys: 200_000, items: 200_000 }

const PUBLIC: readonly Routes<OperationsDeps>[] = [
  (app, { deps }) => intentsRoutes(app, { deps, outline: outlineOf(deps) }),
  plansRoutes,
  packsRoutes,
  operationsRoutes,
  nodesRoutes,
  interventionsRoutes,
  signalsRoutes,
  gatesRoutes,
  losingRoutes,
  patchesRoutes,
  historyRoutes,
  auditRoutes,
  calendarRoutes,
  peopleFreezesRoutes,
  schedulesRoutes,
  hooksRoutes,
  notificationsRoutes,
  destinationsRoutes,
  deliveriesRoutes,
  pushRoutes,
  meRoutes,
  waitingRoutes,
  overviewRoutes,
  engineRoutes,
  workRoutes,
]
const INTERNAL: readonly Routes<OperationsDeps>[] = [internalRoutes, projectionRoutes, freezesRoutes, standingRoutes]

/** The two listeners of operations: the public API behind user tokens, the internal one behind service tokens. */
export const buildApp = async (deps: OperationsDeps) => {
  const { telemetry, trust, db } = deps
  const tail = createTail(deps)
  measureOpen(db, telemetry)
  measureAgents(db, telemetry)
  beginAttempts(telemetry, deps.agentPools)
  const keyed = countKeys(telemetry)
  const denied = telemetry.counter('signalbox_policy_denied_total', 'Requests refused by policy.', ['policy_id'])
  const app = createHttpApp({
    telemetry,
    codes: OPERATIONS_CODES,
    onRefused: async (_req, { category, code }) => {
      if (category === 'policy_denied') denied.inc({ policy_id: code })
      keyed.refused(code)
    },
    body_limit: PUBLIC_BODY,
    request_ms: UPLOAD_MS,
    json_limits: LIMITS,
    openapi: {
      title: 'Signalbox operations',
      description: 'Intents, plans, operations, nodes and gates. Every mutation takes an Idempotency-Key.',
    },
  })
  keyed.watch(app as unknown as FastifyInstance)
  app.addHook('preClose', () => tail.close())
  const rejected = telemetry.counter('signalbox_token_rejected_total', 'Tokens refused.', ['cause'])
  await app.register(userAuth, {
    onRejected: (cause) => rejected.inc({ cause }),
    verifier: trust.verifier,
    principals: trust.principals,
    codes: OPERATIONS_CODES,
    onDenied: (req, error) => {
      const by = { actor: `user:${req.caller.user_id}`, roles: req.caller.roles, request_id: String(req.id) }
      const action = `${req.method} ${req.routeOptions.url ?? ''}`
      return auditDenial(deps, { ...by, action, object: req.url.split('?')[0] ?? '' }, error)
    },
  })
  for (const routes of PUBLIC) await app.register(routes, { deps })
  await app.register(eventsRoutes, { deps, tail })
  await serveAgents(app, deps, '/v1')

  return { app, ...(await buildInternal(deps)) }
}

const serveAgents = async (app: HttpApp, deps: OperationsDeps, base: AgentBase) => {
  await app.register(executionsRoutes, { deps, base })
  await app.register(artifactsRoutes, { deps, base })
}

/** The internal listener: agents bring their own keys, all others service tokens. */
const buildInternal = async (deps: OperationsDeps) => {
  const { telemetry, trust } = deps
  const internal = createHttpApp({
    telemetry,
    internal: true,
    codes: OPERATIONS_CODES,
    body_limit: INTERNAL_BODY,
    request_ms: UPLOAD_MS,
    json_limits: LIMITS,
    openapi: {
      title: 'Signalbox operations, internal',
      description: 'Signals of control planes, events of the catalog, and the log of events.',
      listener: 'internal',
    },
  })
  await serveAgents(internal, deps, '/internal/v1')
  const health = serveHealth(internal, telemetry, checksOf(deps))
  await internal.register(async (guarded) => {
    const audience = audienceOf('operations')
    await guarded.register(serviceAuth, { registry: trust.registry, audience, codes: OPERATIONS_CODES })
    for (const routes of INTERNAL) await guarded.register(routes, { deps })
  })
  return { internal, health }
}
