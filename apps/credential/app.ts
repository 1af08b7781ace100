import { createHttpApp } from '../shared/http/app.ts'
import { AUTH_CODES } from '../shared/http/edge-codes.ts'
import { serveHealth } from '../shared/http/health.ts'
import { registerRpc } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { credentialRpc } from './credential.rpc.ts'
import type { CredentialDeps } from './deps.ts'

/** The only listener of this app: RPC, health and metrics. Only session and identity send it passwords. */
export const buildApp = (deps: CredentialDeps) => {
  const { telemetry, registry, pool } = deps
  const app = createHttpApp({ telemetry, codes: AUTH_CODES, body_limit: 16_384, internal: true })
  registerRpc(app, { registry, audience: audienceOf('credential'), services: [credentialRpc(deps)] })
  const health = serveHealth(app, telemetry, { postgres: { critical: true, run: () => pool.query('select 1') } })
  return { app, health }
}
