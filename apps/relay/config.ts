import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { payloadKeys } from '../shared/codec/payload.ts'
import { ConfigError, loadConfig, NO_URL, settings } from '../shared/config.ts'

export const schema = Type.Object({
  RELAY__DATABASE__URL: settings.postgres(),
  RELAY__REDIS__URL: settings.redis(),
  RELAY__NATS__URL: settings.nats(),
  RELAY__LISTEN__HOST: settings.host(),
  RELAY__INTERNAL__PORT: settings.port(7171),
  RELAY__SERVICE__KEY_FILE: authSettings.keyFile('relay'),
  AUTH__RPC__SESSION_URL: settings.url('http://127.0.0.1:7102'),
  AUTH__REDIS__PREFIX: settings.prefix(),
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
  RELAY__TEMPORAL__ADDRESS: settings.temporal(),
  RELAY__TEMPORAL__NAMESPACE: Type.String({ default: 'default', description: 'The namespace in Temporal.' }),
  RELAY__TEMPORAL__QUEUE_PREFIX: settings.prefix(),
  RELAY__TEMPORAL__PAYLOAD_KEYS: payloadKeys(),
  RELAY__TEMPORAL__SEARCH_ATTRIBUTES: Type.Boolean({
    default: true,
    description: 'Whether workflows are found in Temporal by their search attributes, which its namespace must have.',
  }),
  RELAY__AUDIT__KEY_FILE: authSettings.keyFile('audit', 'The Ed25519 key that signs the heads of the audit logs.'),
  RELAY__AUDIT__ANCHOR_FILE: Type.String({
    default: '.signalbox/audit-anchors.jsonl',
    production: 'required',
    description: 'Where the signed heads of the audit logs are kept: a file that the database cannot reach.',
  }),
  RELAY__AUDIT__ANCHOR_S: settings.integer(
    'How often the heads of the audit logs are signed, in seconds.',
    3600,
    1,
    3600,
  ),
  RELAY__SIEM__URL: Type.Optional(
    Type.String({
      pattern: '^(https|syslog\\+tls)://',
      description:
        'Where audit rows go too: https://… takes JSON lines, syslog+tls://host:port takes RFC 5424 messages.',
    }),
  ),
  RELAY__SIEM__TOKEN_FILE: Type.Optional(
    Type.String({ description: 'A file with the token of that https URL; it is read again when it is used.' }),
  ),
  RELAY__SIEM__HEADER: Type.String({
    default: 'Authorization: Bearer {token}',
    pattern: '^[A-Za-z0-9-]+: [ -~]*\\{token\\}[ -~]*$',
    description: 'The header with that token, such as "Authorization: Splunk {token}" or "DD-API-KEY: {token}".',
  }),
  RELAY__SIEM__CA_FILE: Type.Optional(
    Type.String({ description: 'A PEM file: the authority of that receiver; else those of the system.' }),
  ),
  RELAY__SIEM__CERT_FILE: Type.Optional(
    Type.String({ description: 'A PEM file: the certificate by which that receiver knows the relay.' }),
  ),
  RELAY__SIEM__KEY_FILE: Type.Optional(Type.String({ description: 'A PEM file: the key of that certificate.' })),
  RELAY__OUTBOX__POLL_MS: settings.integer(
    'How often new events are looked for if no one wakes the relay, in ms.',
    500,
    5,
    60_000,
  ),
  RELAY__COMMANDS__POLL_MS: settings.integer(
    'How often new commands are looked for if no one wakes the relay, in ms.',
    250,
    5,
    10_000,
  ),
  RELAY__COMMANDS__IN_FLIGHT: settings.integer('How many commands are sent to the engine at once.', 256, 1, 2000),
})

export const loadRelayConfig = (env: NodeJS.ProcessEnv = process.env) => {
  const config = loadConfig(schema, env)
  if (!URL.canParse(config.RELAY__DATABASE__URL)) throw new ConfigError(`RELAY__DATABASE__URL ${NO_URL}`)
  // Its lock and its wake-ups belong to a session.
  if (new URL(config.RELAY__DATABASE__URL).searchParams.has('pooler'))
    throw new ConfigError('RELAY__DATABASE__URL leads to a pooler: name Postgres itself.')
  return config
}
export type RelayConfig = Type.Static<typeof schema>
