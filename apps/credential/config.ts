import { availableParallelism } from 'node:os'
import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { ConfigError, loadConfig, settings } from '../shared/config.ts'
import { refuseBreachedFile } from './passwords/breached.ts'

/** The parameters in the specification; production may not go below them. */
const SPEC = { MEMORY_KIB: 65_536, TIME: 3, PARALLELISM: 4 } as const

/** At most ten at once (the specification). More than the number of cores would only cost memory and slow each down. */
const MOST_HASHES = 10
const HASHES = Math.min(MOST_HASHES, Math.max(2, availableParallelism()))

export const schema = Type.Object({
  CREDENTIAL__DATABASE__URL: settings.postgres(),
  /** Where it reports its health; without it no report is sent. */
  CREDENTIAL__REDIS__URL: Type.Optional(settings.redis()),
  AUTH__REDIS__PREFIX: settings.prefix(),
  CREDENTIAL__LISTEN__HOST: settings.host(),
  CREDENTIAL__RPC__PORT: settings.port(7122),
  CREDENTIAL__HASH__CONCURRENCY: settings.integer(
    'How many passwords are hashed at once, at most 9, and one urgent one beside them.',
    HASHES,
    1,
    MOST_HASHES,
  ),
  CREDENTIAL__HASH__QUEUE_MAX: settings.integer('How many hashes may wait; more are refused.', 100, 0, 10_000),
  CREDENTIAL__HASH__QUEUE_WAIT_MS: settings.integer('How long a hash may wait, in ms.', 2000, 1, 60_000),
  CREDENTIAL__HASH__PER_KEY: settings.integer('How many hashes one requester may run or wait for.', 3, 1, 1000),
  CREDENTIAL__HASH__MEMORY_KIB: settings.integer(
    'The memory of one Argon2id hash, in KiB.',
    SPEC.MEMORY_KIB,
    1024,
    4_194_304,
  ),
  CREDENTIAL__HASH__TIME: settings.integer('The passes of one Argon2id hash.', SPEC.TIME, 2, 100),
  CREDENTIAL__HASH__PARALLELISM: settings.integer('The lanes of one Argon2id hash.', SPEC.PARALLELISM, 1, 64),
  CREDENTIAL__ENROLMENT__KEY: Type.String({
    pattern: '^[A-Za-z0-9+/]{43}=?$',
    secret: true,
    description: 'The key that signs enrolment links: 32 bytes in base64.',
  }),
  CREDENTIAL__PASSWORDS__BREACHED_FILE: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'The SHA-1 file of Pwned Passwords, ordered by hash: its passwords are refused besides those that the product ships.',
    }),
  ),
  CREDENTIAL__FACTORS__KEK: settings.kek('secrets of authenticator apps'),
  CREDENTIAL__ENROLMENT__TTL_S: settings.integer('For how many seconds an enrolment link holds.', 3600, 1, 604_800),
  CREDENTIAL__ENROLMENT__SPLIT_TTL_S: settings.integer(
    'For how many seconds an enrolment link in two halves holds.',
    86_400,
    1,
    604_800,
  ),
  UV_THREADPOOL_SIZE: Type.Integer({
    minimum: 14,
    maximum: 1024,
    description: 'Hashes share the thread pool of the process: ten of them need at least 14 threads in it.',
  }),
  ...authSettings.services,
})
export type CredentialConfig = Type.Static<typeof schema>

export const loadCredentialConfig = (env: NodeJS.ProcessEnv = process.env): CredentialConfig => {
  const config = loadConfig(schema, env)
  const { CREDENTIAL__PASSWORDS__BREACHED_FILE: breached } = config
  const fault = breached && refuseBreachedFile(breached)
  if (fault) throw new ConfigError(`CREDENTIAL__PASSWORDS__BREACHED_FILE ${fault}.`)
  if (env.NODE_ENV !== 'production') return config
  for (const [name, least] of Object.entries(SPEC)) {
    const variable = `CREDENTIAL__HASH__${name}` as keyof CredentialConfig
    if (Number(config[variable]) < least)
      throw new ConfigError(`${variable} is ${config[variable]}: production needs at least ${least}.`)
  }
  return config
}
