import { availableParallelism } from 'node:os'
import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { loadConfig, secretKeysOf, settings } from '../shared/config.ts'
import { parseRate, rateSetting } from '../shared/web/rates.ts'
import { loadEdgePair } from './edge/tls.ts'
import { QUEUES, SEATED, SEATS } from './proxy/seats.ts'

/** The logins credential can answer in its two seconds, at 0.2 s a hash and core. It would refuse more, only later. */
const LOGINS_AT_ONCE = Math.max(16, 12 * availableParallelism())

const byClass = (what: string) =>
  Type.Partial(Type.Record(Type.Enum(SEATED), Type.Integer({ minimum: 0, maximum: 10_000 })), {
    default: {},
    description: `${what}: a JSON object by class (${SEATED.join(', ')}).`,
    additionalProperties: false,
  })

export const schema = Type.Object({
  GATEWAY__REDIS__URL: settings.redis(),
  GATEWAY__REDIS__TIMEOUT_MS: settings.integer('How long the gateway waits for Redis, in ms.', 250, 10, 5000),
  GATEWAY__NATS__URL: settings.nats(),
  GATEWAY__LISTEN__HOST: settings.host(),
  GATEWAY__HTTP__PORT: settings.port(8080),
  GATEWAY__INTERNAL__PORT: settings.port(7091),
  GATEWAY__HTTP__BASE_PATH: Type.String({
    default: '',
    pattern: '^(/[A-Za-z0-9._~-]+)*$',
    description:
      'A path such as /signalbox, below which a reverse proxy offers the API too. The proxy keeps the path, or strips it and names it in X-Forwarded-Prefix. The console stays at the root of the public origin.',
  }),
  GATEWAY__HTTP__TRUSTED_PROXIES: Type.Array(Type.String(), {
    default: [],
    description: 'A JSON array of CIDRs: the proxies whose X-Forwarded-For counts.',
  }),
  GATEWAY__HTTP__TRUSTED_NETWORK: Type.Boolean({
    default: false,
    description:
      'true: production may serve without TLS beyond this host, because no one but the proxy is in the network between them.',
  }),
  GATEWAY__TLS__CERT_FILE: Type.Optional(
    Type.String({
      description:
        'A PEM file: the certificate of the public listener, with its chain; with it, the proxy connects by TLS.',
    }),
  ),
  GATEWAY__TLS__KEY_FILE: Type.Optional(
    Type.String({ description: 'A PEM file: the private key of that certificate.' }),
  ),
  GATEWAY__UPSTREAM__SESSION_URL: settings.url('http://127.0.0.1:7101'),
  GATEWAY__UPSTREAM__IDENTITY_URL: settings.url('http://127.0.0.1:7111'),
  GATEWAY__UPSTREAM__TOKEN_URL: settings.url('http://127.0.0.1:7131'),
  GATEWAY__UPSTREAM__CATALOG_URL: settings.url('http://127.0.0.1:7141'),
  GATEWAY__UPSTREAM__OPERATIONS_URL: settings.url('http://127.0.0.1:7151'),
  GATEWAY__UPSTREAM__CONNECT_MS: settings.integer(
    'How long the gateway waits for a connection to an app, in ms.',
    1000,
    10,
    10_000,
  ),
  GATEWAY__UPSTREAM__REPLY_MS: settings.integer(
    'How long the gateway waits for the answer of an app, in ms.',
    9000,
    10,
    60_000,
  ),
  GATEWAY__PRIORITY__SEATS: byClass('How many requests of each class one upstream has at once'),
  GATEWAY__PRIORITY__QUEUES: byClass('How many requests of each class wait for a seat'),
  GATEWAY__LOGIN__AT_ONCE: settings.integer(
    'How many sign-ins run at once, with 2 more of known browsers; others are refused as login_busy.',
    LOGINS_AT_ONCE,
    1,
  ),
  GATEWAY__LIMITS__LOGIN_IP: rateSetting('Sign-ins of an address', '10/60/20'),
  GATEWAY__LIMITS__LOGIN_NAME: rateSetting('Sign-ins with a username', '10/60/10'),
  GATEWAY__LIMITS__LOGIN_DEVICE: rateSetting('Sign-ins of a browser that is known', '10/60/10'),
  GATEWAY__LIMITS__REFRESH_IP: rateSetting('Refreshes of a session, or of an address without one', '150/300/30'),
  GATEWAY__LIMITS__PAGE_IP: rateSetting(
    'Of a session, or of an address without one: reads of a page before a sign-in or a refresh, and sign-ins without a name',
    '600/300/120',
  ),
  GATEWAY__LIMITS__SSO_IP: rateSetting(
    'Both redirects of a sign-in by a provider, of an address; a whole office may have one',
    '600/300/120',
  ),
  GATEWAY__LIMITS__API: rateSetting('Requests of a person', '600/60/100'),
  GATEWAY__LIMITS__MACHINE: rateSetting(
    'Requests of a machine, and exchanges of credentials of an address',
    '1200/60/200',
  ),
  GATEWAY__LIMITS__LOGOUT: rateSetting(
    'Logout tokens and sign-out links of an address; a provider that ends all its sessions sends one for each, once',
    '12000/60/3000',
  ),
  GATEWAY__LIMITS__FAILED_TOKENS: rateSetting(
    'Refused tokens of an address, before its next refused ones are limited',
    '60/60/60',
  ),
  GATEWAY__LIMITS__JWKS: rateSetting('Reads of the public keys of an address', '60/60/60'),
  GATEWAY__LIMITS__ENROL: rateSetting('Uses of enrolment links of an address', '10/60/10'),
  GATEWAY__LIMITS__DEVICE: rateSetting(
    'Of an address, devices that ask to sign in with a code; their polls are charged as exchanges of machines',
    '10/60/20',
  ),
  GATEWAY__LIMITS__WORK: rateSetting(
    'Of agents: requests of a machine for work, and reports and artifacts of an address',
    '6000/60/600',
  ),
  GATEWAY__PRESSURE__IN_FLIGHT: settings.integer(
    'The requests in flight at which the gateway begins to shed load.',
    2000,
    1,
  ),
  GATEWAY__PRESSURE__DELAY_MS: settings.integer(
    "The delay of the gateway's event loop at which it begins to shed load, in ms.",
    250,
    10,
  ),
  GATEWAY__CONSOLE__DIR: Type.String({
    default: '.signalbox/console',
    description: 'The folder of the built console.',
  }),
  GATEWAY__CONSOLE__ENVIRONMENT: Type.String({
    default: 'demo',
    maxLength: 64,
    description: 'The name of this installation, which the console shows.',
  }),
  GATEWAY__CONSOLE__TIER: Type.Enum(['dev', 'test', 'prod'], {
    default: 'dev',
    description: 'The kind of this installation, by which the console marks itself.',
  }),
  GATEWAY__SERVICE__KEY_FILE: authSettings.keyFile('gateway'),
  AUTH__SECRET__KEYS: settings.secretKeys(),
  AUTH__REDIS__PREFIX: settings.prefix(),
  AUTH__RPC__IDENTITY_URL: settings.url('http://127.0.0.1:7112'),
  ...authSettings.origins,
  ...authSettings.tokens,
  ...authSettings.renewal,
  ...authSettings.jwks,
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
  TOKEN__CORS__ALLOW_CREDENTIALS: Type.Boolean({
    default: true,
    description: 'Whether pages of the other allowed origins may send the cookie.',
  }),
})

export const loadGatewayConfig = (env: NodeJS.ProcessEnv = process.env) => {
  const config = loadConfig(schema, env)
  return {
    ...config,
    tls: loadEdgePair(config, env),
    seats: { ...SEATS, ...config.GATEWAY__PRIORITY__SEATS },
    queues: { ...QUEUES, ...config.GATEWAY__PRIORITY__QUEUES },
    auth_secrets: secretKeysOf(config.AUTH__SECRET__KEYS),
    limits: {
      login_ip: parseRate(config.GATEWAY__LIMITS__LOGIN_IP),
      login_name: parseRate(config.GATEWAY__LIMITS__LOGIN_NAME),
      login_device: parseRate(config.GATEWAY__LIMITS__LOGIN_DEVICE),
      refresh: parseRate(config.GATEWAY__LIMITS__REFRESH_IP),
      page: parseRate(config.GATEWAY__LIMITS__PAGE_IP),
      sso: parseRate(config.GATEWAY__LIMITS__SSO_IP),
      api: parseRate(config.GATEWAY__LIMITS__API),
      machine: parseRate(config.GATEWAY__LIMITS__MACHINE),
      logout: parseRate(config.GATEWAY__LIMITS__LOGOUT),
      failed_tokens: parseRate(config.GATEWAY__LIMITS__FAILED_TOKENS),
      jwks: parseRate(config.GATEWAY__LIMITS__JWKS),
      enrol: parseRate(config.GATEWAY__LIMITS__ENROL),
      device: parseRate(config.GATEWAY__LIMITS__DEVICE),
      work: parseRate(config.GATEWAY__LIMITS__WORK),
    },
  }
}
export type GatewayConfig = ReturnType<typeof loadGatewayConfig>
