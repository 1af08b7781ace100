import { createHttpApp } from '../shared/http/app.ts'
import { AUTH_CODES } from '../shared/http/edge-codes.ts'
import { serveHealth } from '../shared/http/health.ts'
import type { GatewayDeps } from './deps.ts'
import { createGateway } from './edge/server.ts'

/** The public edge, and the internal listener with health and metrics. */
export const buildApp = (deps: GatewayDeps) => {
  const internal = createHttpApp({ telemetry: deps.telemetry, codes: AUTH_CODES, internal: true })
  const health = serveHealth(internal, deps.telemetry, deps.checks)
  return { server: createGateway(deps), internal, health }
}
