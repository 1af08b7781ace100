import { assertRoutesAuthorized, userAuth } from '../shared/auth/http.ts'
import { createHttpApp } from '../shared/http/app.ts'
import { AUTH_CODES } from '../shared/http/edge-codes.ts'
import { serveHealth } from '../shared/http/health.ts'
import { registerRpc } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { changeEndingRoutes, changesRoutes } from './control/routes.ts'
import type { IdentityDeps } from './deps.ts'
import { providersRoutes } from './federation/routes.ts'
import { grantsRoutes, rolesRoutes } from './grants/routes.ts'
import { groupsRoutes, membersRoutes } from './groups/routes.ts'
import { identityRpc } from './identity.rpc.ts'
import { machineCredentialsRoutes, machinesRoutes } from './machines/routes.ts'
import { MEASURES } from './measures.ts'
import { recordDenial } from './mutations.ts'
import { passkeysRoutes } from './passkeys/routes.ts'
import { preferencesRoutes } from './preferences/routes.ts'
import { scimRoutes } from './scim/routes.ts'
import { userEventsRoutes } from './users/events.routes.ts'
import { enrolRoutes, movesRoutes, newUsersRoutes, usersRoutes } from './users/routes.ts'
import { viewsRoutes } from './views/routes.ts'

const openapi = { title: 'Signalbox identity', description: 'Users, groups, roles and grants.' }

/** The public listener (users, groups, grants) and the internal one (RPC, health, metrics). */
export const buildApp = (deps: IdentityDeps) => {
  const { telemetry, verifier, principals, registry, pool } = deps
  const denied = telemetry.counter('signalbox_policy_denied_total', 'Requests refused by policy.', ['policy_id'])
  const app = createHttpApp({
    telemetry,
    codes: AUTH_CODES,
    body_limit: 16_384,
    openapi,
    onRefused: async (req, error) => {
      if (error.category !== 'policy_denied') return
      denied.inc({ policy_id: error.code })
      await recordDenial(deps, req, error)
    },
  })
  const rejected = telemetry.counter('signalbox_token_rejected_total', 'Tokens refused.', ['cause'])
  app.register(userAuth, { verifier, principals, onRejected: (cause) => rejected.inc({ cause }) })
  // Personal data and rights are only for the requester.
  app.addHook('onRequest', async (_req, reply) => {
    reply.header('cache-control', 'no-store')
  })
  const plugins = [usersRoutes, enrolRoutes, newUsersRoutes, movesRoutes, groupsRoutes, membersRoutes]
  const machines = [machinesRoutes, machineCredentialsRoutes]
  const others = [
    ...machines,
    grantsRoutes,
    rolesRoutes,
    providersRoutes,
    changeEndingRoutes,
    userEventsRoutes,
    passkeysRoutes,
    viewsRoutes,
    preferencesRoutes,
  ]
  for (const routes of [...plugins, ...others]) app.register(routes, { deps })
  app.register(scimRoutes, { deps })
  app.register(changesRoutes, { deps, measures: MEASURES })
  app.addHook('onReady', async () => assertRoutesAuthorized(app))

  const internal = createHttpApp({ telemetry, codes: AUTH_CODES, body_limit: 65_536, internal: true })
  registerRpc(internal, { registry, audience: audienceOf('identity'), services: [identityRpc(deps)] })
  const health = serveHealth(internal, telemetry, { postgres: { critical: true, run: () => pool.query('select 1') } })
  return { app, internal, health }
}
