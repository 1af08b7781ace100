import type { Static, TObject } from 'typebox'
import { type Clock, systemClock } from '../clock.ts'
import { createJwksClient } from '../jwt/jwks.ts'
import { loadRegistry } from '../service/tokens.ts'
import type { Telemetry } from '../telemetry.ts'
import { watchProviders } from './providers.ts'
import type { authSettings } from './settings.ts'
import { createAccessVerifier, createRefreshVerifier } from './user-tokens.ts'

type Settings<T extends TObject['properties']> = Static<TObject<T>>

/** An app's cache of token's public keys, read from `start` on. */
export const jwksOf = (config: Settings<typeof authSettings.jwks>, telemetry: Telemetry) =>
  createJwksClient({
    telemetry,
    url: config.AUTH__JWKS__URL,
    cache_s: config.AUTH__JWKS__CACHE_S,
    cooldown_s: config.AUTH__JWKS__COOLDOWN_S,
    max_stale_s: config.AUTH__JWKS__MAX_STALE_S,
    onError: (err) => telemetry.log.warn({ err }, 'the keys of token cannot be read'),
  })
type Jwks = ReturnType<typeof jwksOf>

type Tokens = Settings<typeof authSettings.tokens>
type Renewal = Settings<typeof authSettings.renewal>

const issued = (config: Tokens, jwks: Jwks, clock: Clock) => ({
  jwks,
  issuer: config.AUTH__TOKENS__ISSUER,
  skew_s: config.AUTH__TOKENS__CLOCK_SKEW_S,
  clock,
})

export const accessVerifierOf = (config: Tokens, jwks: Jwks, clock: Clock = systemClock) =>
  createAccessVerifier({ ...issued(config, jwks, clock), audience: config.AUTH__TOKENS__AUDIENCE })

export const refreshVerifierOf = (config: Tokens & Renewal, jwks: Jwks, clock: Clock = systemClock) =>
  createRefreshVerifier({ ...issued(config, jwks, clock), audience: config.AUTH__TOKENS__REFRESH_AUDIENCE })

/** The services that may call this app, read again when the file changes. */
export const registryOf = (config: Settings<typeof authSettings.services>, telemetry: Telemetry) =>
  loadRegistry(config.AUTH__SERVICES__FILE, {
    onError: (err) => telemetry.log.error({ err }, 'the registry of services cannot be read'),
  })

/** The identity providers that people may sign in with, read again when the file changes. */
export const providersOf = (
  config: Settings<typeof authSettings.providers> & { production: boolean },
  telemetry: Telemetry,
  onChange?: () => void,
) =>
  watchProviders(config.AUTH__PROVIDERS__FILE, {
    production: config.production,
    ...(onChange && { onChange }),
    onError: (err) => telemetry.log.error({ err }, 'the file of providers cannot be used: those read before stay'),
  })
