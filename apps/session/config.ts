import Type from 'typebox'
import { authSettings, emergencyNames } from '../shared/auth/settings.ts'
import { ConfigError, loadConfig, secretKeysOf, settings } from '../shared/config.ts'
import { RoleName } from '../shared/contracts/identity/users.ts'
import { TOKEN_KINDS } from '../shared/jwt/claims.ts'
import { parseRate, rateSetting } from '../shared/web/rates.ts'

/** Production ends a session after half a day without use, unless the setting says otherwise. */
const PRODUCTION_IDLE_S = '43200'

export const schema = Type.Object({
  SESSION__DATABASE__URL: settings.postgres(),
  SESSION__REDIS__URL: settings.redis(),
  /** Where it learns of revoked keys; without it, it reads the keys every second. */
  SESSION__NATS__URL: Type.Optional(settings.nats()),
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
  SESSION__LISTEN__HOST: settings.host(),
  SESSION__HTTP__PORT: settings.port(7101),
  SESSION__RPC__PORT: settings.port(7102),
  SESSION__SECRET__KEYS: settings.secretKeys(),
  SESSION__SERVICE__KEY_FILE: authSettings.keyFile('session'),
  ...authSettings.services,
  AUTH__SECRET__KEYS: settings.secretKeys(),
  AUTH__REDIS__PREFIX: settings.prefix(),
  AUTH__RPC__IDENTITY_URL: settings.url('http://127.0.0.1:7112'),
  AUTH__RPC__CREDENTIAL_URL: settings.url('http://127.0.0.1:7122'),
  AUTH__RPC__TOKEN_URL: settings.url('http://127.0.0.1:7132'),
  ...authSettings.tokens,
  ...authSettings.renewal,
  ...authSettings.jwks,
  ...authSettings.providers,
  ...authSettings.webauthn,
  SESSION__SSO__REDIRECT_URIS: Type.Array(Type.String({ pattern: '^https://' }), {
    default: [],
    description: 'A JSON array of exact https addresses that our mobile apps claim.',
  }),
  AUTH__DEVICE_GRANT: Type.Enum(['on', 'off'], {
    default: 'on',
    description: 'Whether a device without a browser may be signed in by a code (signalbox login --device).',
  }),
  ...authSettings.local,
  ...authSettings.reauth,
  ...authSettings.origins,
  TOKEN__TOKENS__COOKIE_PATH: Type.String({
    default: '/v1/token',
    pattern: '^/[A-Za-z0-9/_-]*$',
    description: 'The path of that cookie.',
  }),
  TOKEN__TOKENS__COOKIE_DOMAIN: Type.String({
    default: '',
    pattern: '^[A-Za-z0-9.-]*$',
    description: 'The domain of the cookie of the refresh token; empty: the host alone.',
  }),
  TOKEN__TOKENS__COOKIE_SECURE: Type.Boolean({
    default: true,
    description: 'Whether that cookie is sent by TLS alone; production demands it.',
  }),
  TOKEN__TOKENS__COOKIE_HTTPONLY: Type.Boolean({
    default: true,
    description: 'Whether scripts are kept from that cookie; production demands it.',
  }),
  TOKEN__TOKENS__COOKIE_SAMESITE: Type.Enum(['strict', 'lax', 'none'], {
    default: 'strict',
    description: 'Which sites may send that cookie; production refuses none.',
  }),
  SESSION__LIMITS__REFRESH: rateSetting('Refreshes of a session', '20/60/30'),
  SESSION__LIMITS__PASSWORD: rateSetting('Proofs of a password by a signed-in person', '5/600/5'),
  SESSION__LIMITS__LOGIN_FAILURES: rateSetting('Failed sign-ins of an address', '100/86400/100'),
  SESSION__LIMITS__MACHINE_FAILURES: rateSetting('Refused machine credentials of an address', '60/60/60'),
  SESSION__LOCKOUT__FREE: settings.integer('How many failed sign-ins are free of a wait.', 5, 1, 1000),
  SESSION__LOCKOUT__MAX_S: settings.integer('The longest wait after a failed sign-in, in seconds.', 900, 1, 86_400),
  SESSION__LOCKOUT__CLOSE_AT: settings.integer(
    'After how many failed sign-ins an account is closed until an administrator opens it.',
    100,
    2,
    1_000_000,
  ),
  SESSION__REFRESH__RETRY_WINDOW_S: settings.integer(
    'For how many seconds a used refresh token may be sent again with the same Idempotency-Key, from the last repeat on.',
    10,
    0,
    60,
  ),
  SESSION__CAP__PER_USER: settings.integer('The most sessions of a person; one more ends the oldest.', 20, 1, 100),
  SESSION__IDLE__LIMIT_S: settings.integer(
    'After how many seconds without use a session ends; 0: never. Production: 43200 unless set.',
    0,
  ),
  SESSION__SECOND_FACTOR__ROLES: Type.Array(RoleName, {
    default: [],
    description:
      'A JSON array of roles whose holders need a second factor after their password, or after a provider without require_amr; without one they may only set one up.',
  }),
  SESSION__BINDING__MODE: Type.Enum(['off', 'ua', 'ua_ip'], {
    default: 'ua',
    description: 'What must stay the same in a session: neither, the kind of browser, or also the network.',
  }),
  SESSION__BINDING__ACTION: Type.Enum(['signal', 'step_up', 'revoke'], {
    default: 'signal',
    description:
      'What a changed browser or network does to a session: note it, ask for a fresh sign-in before risky acts, or end it.',
  }),
  SESSION__REDIS__TIMEOUT_MS: settings.integer('How long session waits for Redis, in ms.', 500, 10, 5000),
  SESSION__REDIS__WAIT_REPLICAS: settings.integer(
    'How many replicas of Redis must have a rotation or revocation before it is answered.',
    0,
    0,
    5,
  ),
})

/** Reads session's settings; production refuses values that would weaken cookies. */
export const loadSessionConfig = (env: NodeJS.ProcessEnv = process.env) => {
  const idle_default = env.NODE_ENV === 'production' ? { SESSION__IDLE__LIMIT_S: PRODUCTION_IDLE_S } : {}
  const config = loadConfig(schema, { ...idle_default, ...env })
  const idle = config.SESSION__IDLE__LIMIT_S
  if (idle !== 0 && idle < TOKEN_KINDS.access.lifetime_s) {
    throw new ConfigError(
      `SESSION__IDLE__LIMIT_S is ${idle}: it must be 0 (off) or at least ${TOKEN_KINDS.access.lifetime_s}, the life of a token.`,
    )
  }
  if (env.NODE_ENV === 'production') refuseWeakCookies(config)
  return {
    ...config,
    break_glass: emergencyNames(config),
    secrets: secretKeysOf(config.SESSION__SECRET__KEYS),
    auth_secrets: secretKeysOf(config.AUTH__SECRET__KEYS),
    limits: {
      refresh: parseRate(config.SESSION__LIMITS__REFRESH),
      password: parseRate(config.SESSION__LIMITS__PASSWORD),
      machine_failures: parseRate(config.SESSION__LIMITS__MACHINE_FAILURES),
      login_failures: parseRate(config.SESSION__LIMITS__LOGIN_FAILURES),
    },
    production: env.NODE_ENV === 'production',
  }
}
export type SessionConfig = ReturnType<typeof loadSessionConfig>

const refuseWeakCookies = (config: Type.Static<typeof schema>) => {
  for (const name of ['TOKEN__TOKENS__COOKIE_SECURE', 'TOKEN__TOKENS__COOKIE_HTTPONLY'] as const) {
    if (!config[name])
      throw new ConfigError(`${name} is false: production keeps the refresh token from scripts and plain HTTP.`)
  }
  if (config.TOKEN__TOKENS__COOKIE_SAMESITE === 'none') {
    throw new ConfigError('TOKEN__TOKENS__COOKIE_SAMESITE is none: production sends the cookie to its own site only.')
  }
}
