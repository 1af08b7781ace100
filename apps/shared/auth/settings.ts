import Type from 'typebox'
import { ConfigError, settings } from '../config.ts'
import { foldUsername } from './username.ts'

/** The settings of auth.md 11 that more than one app reads, under their given names. */
export const authSettings = {
  tokens: {
    AUTH__TOKENS__ISSUER: Type.String({
      default: 'http://localhost:8080',
      minLength: 1,
      production: 'required',
      description: 'The issuer of user tokens: the public origin.',
    }),
    AUTH__TOKENS__AUDIENCE: Type.String({
      default: 'signalbox-api',
      minLength: 1,
      description: 'The audience of access tokens.',
    }),
    AUTH__TOKENS__CLOCK_SKEW_S: settings.integer(
      "By how many seconds the clocks of hosts may differ when a token's times are checked.",
      5,
      0,
      30,
    ),
  },
  renewal: {
    AUTH__TOKENS__REFRESH_AUDIENCE: Type.String({
      default: 'signalbox-token',
      minLength: 1,
      description: 'The audience of refresh tokens.',
    }),
    TOKEN__TOKENS__COOKIE_NAME: Type.String({
      default: 'refresh_token',
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      description: 'The name of the cookie of the refresh token.',
    }),
  },
  jwks: {
    AUTH__JWKS__URL: settings.url('http://127.0.0.1:7131/jwks', {
      production: 'required',
      description: 'The http or https URL of the public keys of token.',
    }),
    AUTH__JWKS__CACHE_S: settings.integer('For how long the public keys of token are fresh, in seconds.', 300, 1, 3600),
    AUTH__JWKS__COOLDOWN_S: settings.integer(
      'The least seconds between two reads of those keys for tokens with an unknown key.',
      30,
      0,
      3600,
    ),
    AUTH__JWKS__MAX_STALE_S: settings.integer(
      'How long after their last read those keys are still trusted, in seconds.',
      86_400,
      1,
    ),
  },
  reauth: {
    AUTH__REAUTH__MAX_AGE_S: settings.integer(
      'How long ago a person may have signed in for a change that needs a fresh sign-in, in seconds.',
      900,
      1,
    ),
  },
  origins: {
    GATEWAY__HTTP__PUBLIC_ORIGIN: settings.url('http://localhost:8080', {
      production: 'https',
      description: 'The http or https URL at which people open the console.',
    }),
    TOKEN__CORS__ENABLED: Type.Boolean({
      default: true,
      description: 'Whether pages of other origins may call the API at all.',
    }),
    TOKEN__CORS__ALLOW_ORIGINS: Type.Array(Type.String(), {
      default: [],
      description: 'A JSON array of exact origins besides the public one whose pages may call the API.',
    }),
  },
  services: {
    AUTH__SERVICES__FILE: Type.String({
      default: '.signalbox/keys/services.json',
      production: 'required',
      description: 'The registry of services: who may call internal listeners.',
    }),
  },
  providers: {
    AUTH__PROVIDERS__FILE: Type.Optional(
      Type.String({ minLength: 1, description: 'The YAML file of identity providers; without it, passwords only.' }),
    ),
  },
  local: {
    AUTH__LOCAL__LOGIN: Type.Enum(['all', 'break_glass'], {
      default: 'all',
      description: 'Whose password signs in; break_glass: only that of AUTH__LOCAL__USERS, with a second factor.',
    }),
    AUTH__LOCAL__USERS: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      maxItems: 5,
      description: 'A JSON array of at most 5 usernames: the emergency accounts of break_glass.',
    }),
  },
  webauthn: {
    AUTH__WEBAUTHN__RP_ID: Type.String({
      default: '',
      pattern: '^[a-z0-9.-]*$',
      description: 'The domain of passkeys; empty: the host of the public origin. A change ends all passkeys.',
    }),
    AUTH__WEBAUTHN__ORIGINS: Type.Array(Type.String({ pattern: '^https?://[^/]+$' }), {
      default: [],
      description: 'A JSON array of origins besides the public one where passkeys may be used.',
    }),
  },
  keyFile: (name: string, description = 'The Ed25519 key by which this app proves itself to other apps.') =>
    Type.String({ default: `.signalbox/keys/${name}.json`, production: 'required', description }),
}

type LocalSettings = { [K in keyof typeof authSettings.local]: Type.Static<(typeof authSettings.local)[K]> }

/** The folded names whose passwords sign in; undefined: everyone's do. */
export const emergencyNames = (
  config: LocalSettings & { AUTH__PROVIDERS__FILE?: string },
): ReadonlySet<string> | undefined => {
  if (config.AUTH__LOCAL__LOGIN === 'all') return undefined
  if (config.AUTH__PROVIDERS__FILE === undefined)
    throw new ConfigError('AUTH__LOCAL__LOGIN is break_glass: set AUTH__PROVIDERS__FILE too, or nobody else signs in.')
  if (config.AUTH__LOCAL__USERS.length === 0)
    throw new ConfigError(
      'AUTH__LOCAL__LOGIN is break_glass: name an administrator in AUTH__LOCAL__USERS, for when the provider is down.',
    )
  return new Set(config.AUTH__LOCAL__USERS.map(foldUsername))
}

export const rpIdOf = (config: { AUTH__WEBAUTHN__RP_ID: string; GATEWAY__HTTP__PUBLIC_ORIGIN: string }): string =>
  config.AUTH__WEBAUTHN__RP_ID || new URL(config.GATEWAY__HTTP__PUBLIC_ORIGIN).hostname
