import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createServiceKey, type RegistryEntry, registryEntryOf, type ServiceJwk } from '../../shared/service/keys.ts'
import { SERVICE_SCOPES } from '../../shared/service/scopes.ts'
import { DATABASE_ROLES } from '../base/database.ts'
import { writeWhole } from '../base/record.ts'
import { createServerSecrets, type ServerSecrets } from '../servers/up.ts'

/** The folder below `keys` with keys that are known, but not in use yet. */
export const NEXT_KEYS = 'next'
const APPS_WITH_SECRET = [
  'gateway',
  'session',
  'identity',
  'credential',
  'token',
  'catalog',
  'operations',
  'worker',
  'relay',
]

/** The development secrets of one platform folder: created once, kept, readable only by their owner. */
export type Keys = {
  /** `<keys>/<app>.json`: the Ed25519 key with which an app signs its service tokens. */
  serviceKeyFile: (app: string) => string
  /** The registry of all callers of internal listeners. */
  services_file: string
  evidence_key_file: string
  audit_key_file: string
  /** The P-256 key that signs Web Push (RFC 8292). */
  push_key_file: string
  /** The token that the demo fleet requires from writers, as a secret of the executors. */
  fleet_token_file: string
  secrets_dir: string
  /** `<APP>__SECRET__KEYS`. */
  secretKeys: (app: string) => string
  auth_secret_keys: string
  token_kek: string
  factors_kek: string
  enrolment_key: string
  payload_keys: string
  servers: ServerSecrets
}

type Stored = {
  apps: Record<string, string>
  auth: string
  token_kek: string
  factors_kek: string
  enrolment: string
  payload: string
  servers: ServerSecrets
}

/** Reads the keys below `dir` and creates the missing ones; without `demo`, none for the demo. */
export const ensureKeys = (dir: string, demo = true): Keys => {
  const keys = join(dir, 'keys')
  const secrets_dir = join(dir, 'secrets')
  for (const folder of [keys, secrets_dir]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    chmodSync(folder, 0o700)
  }
  const serviceKeyFile = (app: string) => join(keys, `${app}.json`)
  const services_file = join(keys, 'services.json')
  const callers = Object.keys(SERVICE_SCOPES).filter((app) => demo || !/^(fleet|demo-)/.test(app))
  writeRegistry(services_file, serviceKeyFile, callers)
  const stored = storedSecrets(join(keys, 'secrets.json'))
  const fleet_token_file = join(secrets_dir, 'fleet-token.1')
  if (demo) keep(fleet_token_file, () => `Bearer ${randomBytes(24).toString('base64url')}\n`)
  return {
    serviceKeyFile,
    services_file,
    evidence_key_file: signingKey(join(keys, 'evidence.json')),
    audit_key_file: signingKey(join(keys, 'audit.json')),
    push_key_file: signingKey(join(keys, 'push.json'), () => generateKeyPairSync('ec', { namedCurve: 'P-256' })),
    fleet_token_file,
    secrets_dir,
    secretKeys: (app) => JSON.stringify([stored.apps[app]]),
    auth_secret_keys: JSON.stringify([stored.auth]),
    token_kek: stored.token_kek,
    factors_kek: stored.factors_kek,
    enrolment_key: stored.enrolment,
    payload_keys: JSON.stringify([stored.payload]),
    servers: stored.servers,
  }
}

/** Writes a private file unless it exists. */
const keep = (file: string, make: () => string): void => {
  if (!existsSync(file)) writeWhole(file, make())
}

const signingKey = (file: string, make = () => generateKeyPairSync('ed25519')): string => {
  keep(file, () => JSON.stringify(make().privateKey.export({ format: 'jwk' })))
  return file
}

/**
 * Adds a key and a registry entry with audiences and scopes for every caller; other entries stay as they are. During a
 * rotation an entry has two keys: the one that signs, and the next or the previous one.
 */
const writeRegistry = (
  services_file: string,
  serviceKeyFile: (app: string) => string,
  callers: readonly string[],
): void => {
  const before = existsSync(services_file) ? readFileSync(services_file, 'utf8') : '{}'
  const registry = JSON.parse(before) as Record<string, RegistryEntry>
  for (const app of callers) {
    keep(serviceKeyFile(app), () => JSON.stringify(createServiceKey().private_jwk))
    const [own, next] = [publicPart(serviceKeyFile(app)), join(dirname(services_file), NEXT_KEYS, `${app}.json`)]
    const others = (registry[app]?.keys ?? []).filter(({ kid }) => kid !== own.kid)
    registry[app] = registryEntryOf(app, [own, ...(existsSync(next) ? [publicPart(next)] : others)])
  }
  const text = `${JSON.stringify(registry, null, 2)}\n`
  if (text !== before) writeWhole(services_file, text)
}

const publicPart = (file: string): ServiceJwk => {
  const { x, kid } = JSON.parse(readFileSync(file, 'utf8')) as { x: string; kid: string }
  return { kty: 'OKP', crv: 'Ed25519', x, kid }
}

const storedSecrets = (file: string): Stored => {
  const secret = () => randomBytes(32).toString('base64')
  const have = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Partial<Stored>) : {}
  const fresh = createServerSecrets(Object.keys({ ...DATABASE_ROLES, gateway: 1 }))
  const stored: Stored = {
    apps: { ...Object.fromEntries(APPS_WITH_SECRET.map((app) => [app, secret()])), ...have.apps },
    auth: have.auth ?? secret(),
    token_kek: have.token_kek ?? secret(),
    factors_kek: have.factors_kek ?? secret(),
    enrolment: have.enrolment ?? secret(),
    payload: have.payload ?? secret(),
    servers: {
      postgres: have.servers?.postgres ?? fresh.postgres,
      redis: have.servers?.redis ?? fresh.redis,
      users: { ...fresh.users, ...have.servers?.users },
    },
  }
  const text = JSON.stringify(stored, null, 2)
  if (!existsSync(file) || text !== readFileSync(file, 'utf8')) writeWhole(file, text)
  return stored
}
