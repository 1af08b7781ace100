import { sql } from 'drizzle-orm'
import { checkRedis } from '../../db/redis/redis.ts'
import { assertRoutesAuthorized, userAuth } from '../shared/auth/http.ts'
import { createHttpApp } from '../shared/http/app.ts'
import { AUTH_CODES } from '../shared/http/edge-codes.ts'
import { holds, serveHealth } from '../shared/http/health.ts'
import { registerRpc } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { identitiesRoutes } from './account/identities.routes.ts'
import { passkeyRoutes } from './account/passkeys.routes.ts'
import { passwordRoutes } from './account/password.routes.ts'
import { totpRoutes } from './account/totp.routes.ts'
import type { SessionDeps } from './deps.ts'
import { deviceRoutes } from './device/routes.ts'
import { refusalsRoutes } from './machines/refusals.ts'
import { machineRoutes } from './machines/routes.ts'
import { adminRoutes } from './sessions/admin.routes.ts'
import { authEventsRoutes } from './sessions/auth-events.routes.ts'
import { sessionsRoutes } from './sessions/routes.ts'
import { ssoRoutes } from './sso/routes.ts'
import { BODY_LIMIT } from './token/grants.ts'
import { tokenRoutes } from './token/routes.ts'
import { sessionRpc } from './token/rpc.ts'

/** The public API, behind the gateway, and the internal listener: RPC, health and metrics. */
export const buildApp = (deps: SessionDeps) => {
  const { telemetry, counts, registry, redis, revocations, jwks } = deps
  const app = createHttpApp({
    telemetry,
    codes: AUTH_CODES,
    body_limit: BODY_LIMIT,
    openapi: { title: 'Session', description: 'Login, tokens and sessions.' },
    onRefused: async (req, error) => {
      if (error.category !== 'policy_denied') return
      counts.denied.inc({ policy_id: error.code })
      await deps.audit({
        action: 'forbidden',
        outcome: 'denied',
        reason: error.code,
        actor: req.claims ? `user:${req.claims.sub}` : 'unknown',
        request_id: String(req.id),
        details: { route: `${req.method} ${req.routeOptions.url}` },
      })
    },
  })
  app.register(userAuth, {
    verifier: deps.verifyAccess,
    principals: deps.principals,
    onRejected: (cause) => counts.rejected.inc({ cause }),
  })
  // Tokens and sessions are only for the requester.
  app.addHook('onRequest', (_req, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
  app.addHook('preHandler', async () => deps.revocations.assertApplied())
  app.register(tokenRoutes, { deps })
  app.register(ssoRoutes, { deps })
  app.register(machineRoutes, { deps })
  app.register(refusalsRoutes, { deps })
  app.register(deviceRoutes, { deps })
  app.register(sessionsRoutes, { deps })
  app.register(passwordRoutes, { deps })
  app.register(passkeyRoutes, { deps })
  app.register(identitiesRoutes, { deps })
  app.register(totpRoutes, { deps })
  app.register(adminRoutes, { deps })
  app.register(authEventsRoutes, { deps })
  app.addHook('onReady', async () => assertRoutesAuthorized(app))

  const internal = createHttpApp({ telemetry, codes: AUTH_CODES, body_limit: 65_536, internal: true })
  const health = serveHealth(internal, telemetry, {
    redis: { critical: true, run: () => checkRedis(redis) },
    revocations: { critical: true, run: () => revocations.check() },
    postgres: { critical: false, run: () => deps.db.execute(sql`select 1`) },
    keys: { critical: false, run: holds(jwks.isReady, 'no keys of token yet') },
  })
  registerRpc(internal, { registry, audience: audienceOf('session'), services: [sessionRpc(deps)] })
  return { app, internal, health }
}
