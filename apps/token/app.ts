import { withoutUsers } from '../shared/auth/http.ts'
import { createHttpApp } from '../shared/http/app.ts'
import { AUTH_CODES } from '../shared/http/edge-codes.ts'
import { holds, serveHealth } from '../shared/http/health.ts'
import { registerRpc } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import type { TokenDeps } from './deps.ts'
import { jwksRoutes } from './jwks.routes.ts'
import { tokenRpc } from './token.rpc.ts'

const openapi = { title: 'Signalbox token', description: 'The public keys that user tokens are verified with.' }

/** The public listener (JWKS) and the internal one (RPC, health, metrics). */
export const buildApp = (deps: TokenDeps) => {
  const { telemetry, keyring, registry, pool } = deps
  const app = createHttpApp({ telemetry, codes: AUTH_CODES, body_limit: 16_384, openapi })
  app.register(withoutUsers)
  app.register(jwksRoutes, { deps })

  const internal = createHttpApp({ telemetry, codes: AUTH_CODES, body_limit: 65_536, internal: true })
  registerRpc(internal, { registry, audience: audienceOf('token'), services: [tokenRpc(deps)] })
  const health = serveHealth(internal, telemetry, {
    postgres: { critical: true, run: () => pool.query('select 1') },
    keys: { critical: true, run: holds(() => keyring.active() !== undefined, 'no signing key is loaded') },
  })
  return { app, internal, health }
}
