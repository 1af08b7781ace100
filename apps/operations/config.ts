import { fileURLToPath } from 'node:url'
import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { payloadKeys } from '../shared/codec/payload.ts'
import { ConfigError, loadConfig, settings } from '../shared/config.ts'
import { OptionalText } from '../shared/contracts/shapes.ts'
import { Destination } from '../shared/web/egress.ts'
import { PACKAGE } from './packs/packages.ts'

const EXECUTOR_POLICY = fileURLToPath(new URL('../../activities/executors/policy.yaml', import.meta.url))

export const schema = Type.Object({
  OPERATIONS__DATABASE__URL: settings.postgres(),
  OPERATIONS__NATS__URL: settings.nats(),
  /** Where this process reports its health; without it nothing is reported. */
  OPERATIONS__REDIS__URL: Type.Optional(settings.redis()),
  AUTH__REDIS__PREFIX: settings.prefix(),
  OPERATIONS__LISTEN__HOST: settings.host(),
  OPERATIONS__HTTP__PORT: settings.port(7151),
  OPERATIONS__INTERNAL__PORT: settings.port(7152),
  OPERATIONS__SECRET__KEYS: settings.secretKeys(),
  OPERATIONS__SERVICE__KEY_FILE: authSettings.keyFile('operations'),
  /** The private key that signs exported evidence: an Ed25519 JWK. */
  OPERATIONS__EVIDENCE__KEY_FILE: authSettings.keyFile('evidence', 'The Ed25519 key that signs exported evidence.'),
  OPERATIONS__CATALOG__URL: settings.url('http://127.0.0.1:7142'),
  OPERATIONS__TEMPORAL__PAYLOAD_KEYS: payloadKeys(),
  OPERATIONS__TEMPORAL__UI_URL: settings.url('http://127.0.0.1:8233', {
    description: 'The http or https URL of Temporal’s own console, to which engineers are led.',
  }),
  OPERATIONS__PACKS__DIR: Type.Optional(Type.String({ description: "A folder with the site's own procedure packs." })),
  OPERATIONS__PACKS__PACKAGES: Type.Array(Type.String({ pattern: PACKAGE }), {
    default: [],
    description:
      'Archives of "npm pack" with procedure packs, as a JSON array: each a path or URL and its digest, such as "/srv/net-1.2.0.tgz@sha256:<hex>", or "oci://HOST/NAME@sha256:<manifest>".',
  }),
  OPERATIONS__PACKS__REGISTRY_FILE: OptionalText({
    description: 'The file that "docker login" writes: credentials for registries of packages.',
  }),
  OPERATIONS__POLICY__DIR: OptionalText({
    description: "A folder with the site's gates, calendar and Cedar forbid policies.",
  }),
  WORKER__EXECUTORS__POLICY_FILE: Type.String({
    default: EXECUTOR_POLICY,
    description: 'The YAML file that says what executors may reach and which secrets a plan may name.',
  }),
  OPERATIONS__COMMANDS__WAIT_MS: settings.integer(
    'How long the answer to a command waits for its outcome, in ms.',
    2000,
    0,
    10_000,
  ),
  OPERATIONS__COMMANDS__DISPATCH_DEADLINE_S: settings.integer(
    'How many seconds after it was given a command may still be sent to the engine.',
    300,
    1,
    86_400,
  ),
  OPERATIONS__PROJECTION__MAX_LAG_MS: settings.integer(
    'By how many ms the view of the catalog may lag when a plan is made.',
    2000,
    0,
    60_000,
  ),
  OPERATIONS__CANCEL__COOLOFF_S: settings.integer(
    'How many seconds after the first cancel it may be forced.',
    60,
    0,
    86_400,
  ),
  OPERATIONS__CANCEL__FORCE_GRACE_S: settings.integer(
    'How many seconds after a forced cancel work that has not ended is closed as unknown.',
    30,
    0,
    3600,
  ),
  OPERATIONS__PLANS__TTL_S: settings.integer('For how many seconds a plan may be started.', 86_400, 60),
  OPERATIONS__GATES__STANDING_S: settings.integer(
    'How many seconds ago the voters of an approval may have been proved when a node behind it starts.',
    5,
    1,
    60,
  ),
  OPERATIONS__GATES__BULK_APPROVE: Type.Enum(['off', 'low', 'medium'], {
    default: 'low',
    description: 'Up to which risk approvals may be given together with others.',
  }),
  /** Where tickets lead; those that do not match the pattern stay text. */
  OPERATIONS__TICKETS__URL: OptionalText({
    pattern: '^https://[^/{}]+/[^{}]*\\{ticket\\}[^{}]*$',
    description: 'Where the ticket of a decision leads: an https URL with {ticket} after the host.',
  }),
  OPERATIONS__TICKETS__PATTERN: Type.String({
    default: '[A-Za-z][A-Za-z0-9_]*-[0-9]+',
    description: 'A regular expression that a whole ticket must match to become a link.',
  }),
  OPERATIONS__PROVENANCE__LOOKBACK_S: settings.integer(
    'Rights granted by a participant of an operation count only if granted this many seconds before its plan was made.',
    604_800,
    0,
    31_536_000,
  ),
  OPERATIONS__LIMITS__PLAN_NODES: settings.integer('The most nodes of a plan.', 5000, 1),
  OPERATIONS__LIMITS__PLAN_EDGES: settings.integer('The most edges of a plan.', 20_000, 1),
  OPERATIONS__LIMITS__GRAPH_NODES: settings.integer('The most nodes of a graph that a person draws.', 5000, 1, 5000),
  OPERATIONS__LIMITS__TARGETS: settings.integer('The most targets of an intent.', 5000, 1, 5000),
  OPERATIONS__LOGS__HOT_DAYS: settings.integer(
    'After how many days from the end of an operation its logs are packed.',
    7,
    0,
    3650,
  ),
  OPERATIONS__LOGS__ARCHIVE_DAYS: settings.integer(
    'For how many days after the end of an operation its packed logs are kept.',
    90,
    1,
    3650,
  ),
  OPERATIONS__ARTIFACTS__DIR: Type.String({
    default: '.signalbox/artifacts',
    description: 'The folder of artifacts: files by the digest of their bytes.',
  }),
  OPERATIONS__ARTIFACTS__DAYS: settings.integer(
    'For how many days after the end of an operation the contents of its artifacts are kept.',
    90,
    1,
    3650,
  ),
  OPERATIONS__SWEEP__INTERVAL_MS: settings.integer(
    'How often schedules, deadlines and messages that are due are looked for, in ms.',
    1000,
    20,
  ),
  NOTIFY__ENABLED: Type.Boolean({
    default: false,
    description: 'Whether people are notified of decisions that wait for them, through mail servers and webhooks.',
  }),
  NOTIFY__SMTP__HOST: Type.Optional(Type.String({ description: 'The mail server; without it no mail is sent.' })),
  NOTIFY__SMTP__PORT: settings.port(587, 'The port of the mail server.'),
  NOTIFY__SMTP__TLS: Type.Enum(['starttls', 'implicit', 'none'], {
    default: 'starttls',
    description: 'How mail is encrypted; production refuses none.',
  }),
  NOTIFY__SMTP__USER: Type.Optional(Type.String({ description: 'The account at the mail server.' })),
  NOTIFY__SMTP__PASSWORD_FILE: Type.Optional(
    Type.String({ description: 'The file with the password at the mail server.' }),
  ),
  NOTIFY__SMTP__FROM: Type.Optional(
    Type.String({ pattern: '@', description: 'The mail address that messages come from.' }),
  ),
  /** For development: without a mail server, messages are written to this folder. */
  NOTIFY__MAIL__DIR: Type.Optional(Type.String({ description: 'A folder; only development writes mail to files.' })),
  NOTIFY__CONTENT: Type.Enum(['titles', 'minimal'], {
    default: 'titles',
    description: 'minimal: messages contain only links, no titles.',
  }),
  NOTIFY__GATHER_S: settings.integer('How many seconds a message waits for more decisions to join it.', 5, 0, 3600),
  NOTIFY__GIVE_UP_S: settings.integer(
    'After how many seconds a message that cannot be delivered is given up.',
    86_400,
    1,
  ),
  /** The private key that signs pushes, a P-256 JWK; without it none are sent. A new key ends all subscriptions. */
  NOTIFY__PUSH__KEY_FILE: Type.Optional(Type.String({ description: 'The P-256 key that pushes are signed with.' })),
  /** Push services that browsers may use; `*` matches any run of characters. */
  NOTIFY__PUSH__HOSTS: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
    default: ['fcm.googleapis.com', 'updates.push.services.mozilla.com', '*.notify.windows.com', 'web.push.apple.com'],
    description: 'A JSON array of hosts of push services that browsers may use; * is any run of characters.',
  }),
  /** Internal webhooks that may be called besides those on the internet. */
  NOTIFY__EGRESS__ALLOW: Type.Array(Destination, {
    default: [],
    description:
      'A JSON array of destinations inside the network that webhooks may call: scheme, host, networks, ports.',
  }),
  AUTH__RPC__IDENTITY_URL: settings.url('http://127.0.0.1:7112'),
  AUTH__RPC__SESSION_URL: settings.url('http://127.0.0.1:7102'),
  ...authSettings.reauth,
  /** Where links in messages lead. */
  GATEWAY__HTTP__PUBLIC_ORIGIN: authSettings.origins.GATEWAY__HTTP__PUBLIC_ORIGIN,
  ...authSettings.tokens,
  ...authSettings.jwks,
  ...authSettings.services,
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
})

export const loadOperationsConfig = (env: NodeJS.ProcessEnv = process.env): OperationsConfig => {
  const config = loadConfig(schema, env)
  if (env.NODE_ENV === 'production' && config.NOTIFY__SMTP__HOST && config.NOTIFY__SMTP__TLS === 'none')
    throw new ConfigError(
      'NOTIFY__SMTP__TLS is "none": production sends mail by TLS alone. Allowed: starttls, implicit.',
    )
  if (env.NODE_ENV === 'production' && config.NOTIFY__MAIL__DIR)
    throw new ConfigError('NOTIFY__MAIL__DIR is set: production writes no mail to files. Set NOTIFY__SMTP__HOST.')
  try {
    new RegExp(config.OPERATIONS__TICKETS__PATTERN, 'u')
  } catch {
    throw new ConfigError('OPERATIONS__TICKETS__PATTERN is not a regular expression.')
  }
  return config
}
export type OperationsConfig = Type.Static<typeof schema>
