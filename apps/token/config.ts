import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { ConfigError, loadConfig, settings } from '../shared/config.ts'
import { TOKEN_KINDS } from '../shared/jwt/claims.ts'
import { MAX_KEYS } from '../shared/jwt/jwks.ts'

export const schema = Type.Object({
  TOKEN__DATABASE__URL: settings.postgres(),
  /** Where it reports its health; without it no report is sent. */
  TOKEN__REDIS__URL: Type.Optional(settings.redis()),
  AUTH__REDIS__PREFIX: settings.prefix(),
  TOKEN__LISTEN__HOST: settings.host(),
  TOKEN__HTTP__PORT: settings.port(7131),
  TOKEN__RPC__PORT: settings.port(7132),
  TOKEN__SECRET__KEYS: settings.secretKeys(),
  TOKEN__KEYS__KEK: settings.kek('signing keys'),
  TOKEN__KEYS__RSA_BITS: Type.Integer({
    default: 2048,
    minimum: 2048,
    maximum: 3072,
    multipleOf: 1024,
    description: 'The size of new signing keys.',
  }),
  TOKEN__KEYS__ROTATE_EVERY_S: settings.integer('After how many seconds the next key signs.', 2_592_000, 60),
  TOKEN__KEYS__PUBLISH_LEAD_S: settings.integer('How many seconds a key is published before it signs.', 86_400, 0),
  TOKEN__KEYS__POLL_MS: settings.integer(
    'How often the signing keys are read if no one tells of a change, in ms.',
    1000,
    20,
    60_000,
  ),
  ...authSettings.tokens,
  AUTH__TOKENS__REFRESH_AUDIENCE: authSettings.renewal.AUTH__TOKENS__REFRESH_AUDIENCE,
  AUTH__JWKS__CACHE_S: authSettings.jwks.AUTH__JWKS__CACHE_S,
  AUTH__JWKS__COOLDOWN_S: authSettings.jwks.AUTH__JWKS__COOLDOWN_S,
  ...authSettings.services,
})
export type TokenConfig = Type.Static<typeof schema>

const SLACK_S = 60
/** How long a retired key verifies: a refresh token's lifetime plus an hour in which a slow process may have signed. */
export const VERIFY_S = TOKEN_KINDS.refresh.lifetime_s + 3600
/** Seconds between rotations at which all keys that still verify, the active one and the next fit into one set. */
const SHORTEST_S = Math.ceil(VERIFY_S / (MAX_KEYS - 2))

/**
 * Reads the settings. In production a key must be published long enough before use for every verifier to know it, and
 * no more keys may verify than a verifier takes.
 */
export const loadTokenConfig = (env: NodeJS.ProcessEnv = process.env): TokenConfig => {
  const config = loadConfig(schema, env)
  const { TOKEN__KEYS__ROTATE_EVERY_S: rotate_s, TOKEN__KEYS__PUBLISH_LEAD_S: lead_s } = config
  if (env.NODE_ENV === 'production' && Math.max(rotate_s, lead_s) < SHORTEST_S) {
    throw new ConfigError(
      `TOKEN__KEYS__ROTATE_EVERY_S is ${rotate_s}: production needs at least ${SHORTEST_S}, or more keys would verify than the ${MAX_KEYS} of a key set.`,
    )
  }
  const least = config.AUTH__JWKS__CACHE_S + config.AUTH__JWKS__COOLDOWN_S + SLACK_S
  if (env.NODE_ENV === 'production' && lead_s < least) {
    throw new ConfigError(`TOKEN__KEYS__PUBLISH_LEAD_S is ${lead_s}: production needs at least ${least}.`)
  }
  return config
}
