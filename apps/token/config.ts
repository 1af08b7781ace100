import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { ConfigError, loadConfig, settings } from '../shared/config.ts'

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
  TOKEN__KEYS__RSA_BITS: Type.Integer({ default: 2048, minimum: 2048, maximum: 3072, multipleOf: 1024 }),
  TOKEN__KEYS__ROTATE_EVERY_S: settings.integer(2_592_000, 60),
  TOKEN__KEYS__PUBLISH_LEAD_S: settings.integer(86_400, 0),
  TOKEN__KEYS__POLL_MS: settings.integer(1000, 20, 60_000),
  ...authSettings.tokens,
  AUTH__TOKENS__REFRESH_AUDIENCE: Type.String({ default: 'signalbox-token', minLength: 1 }),
  AUTH__JWKS__CACHE_S: authSettings.jwks.AUTH__JWKS__CACHE_S,
  AUTH__JWKS__COOLDOWN_S: authSettings.jwks.AUTH__JWKS__COOLDOWN_S,
  ...authSettings.services,
})
export type TokenConfig = Type.Static<typeof schema>

const SLACK_S = 60

/** Reads the settings. In production a key must be published long enough before use for every verifier to know it. */
export const loadTokenConfig = (env: NodeJS.ProcessEnv = process.env): TokenConfig => {
  const config = loadConfig(schema, env)
  const least = config.AUTH__JWKS__CACHE_S + config.AUTH__JWKS__COOLDOWN_S + SLACK_S
  if (env.NODE_ENV === 'production' && config.TOKEN__KEYS__PUBLISH_LEAD_S < least) {
    throw new ConfigError(
      `TOKEN__KEYS__PUBLISH_LEAD_S is ${config.TOKEN__KEYS__PUBLISH_LEAD_S}: production needs at least ${least}.`,
    )
  }
  return config
}
