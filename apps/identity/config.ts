import Type from 'typebox'
import { authSettings, emergencyNames, rpIdOf } from '../shared/auth/settings.ts'
import { ConfigError, loadConfig, settings } from '../shared/config.ts'
import { RoleName } from '../shared/contracts/identity/users.ts'
import { isSafeUrl } from './machines/foreign.ts'

export const schema = Type.Object({
  IDENTITY__DATABASE__URL: settings.postgres(),
  /** Where it reports its health; without it no report is sent. */
  IDENTITY__REDIS__URL: Type.Optional(settings.redis()),
  AUTH__REDIS__PREFIX: settings.prefix(),
  /** Where it learns of revoked keys; without it, it reads the keys every second. */
  IDENTITY__NATS__URL: Type.Optional(settings.nats()),
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
  IDENTITY__LISTEN__HOST: settings.host(),
  IDENTITY__HTTP__PORT: settings.port(7111),
  IDENTITY__RPC__PORT: settings.port(7112),
  IDENTITY__SECRET__KEYS: settings.secretKeys(),
  IDENTITY__SERVICE__KEY_FILE: authSettings.keyFile('identity'),
  AUTH__RPC__CREDENTIAL_URL: settings.url('http://127.0.0.1:7122'),
  IDENTITY__DUAL__ROLES: Type.Array(RoleName, {
    default: [],
    description:
      'A JSON array of roles that need two administrators, besides approver, operator, admin and controller.',
  }),
  IDENTITY__DUAL__TTL_S: settings.integer(
    'For how many seconds a change waits for the second administrator.',
    259_200,
    1,
  ),
  AUTH__MACHINES__ISSUERS: Type.Array(Type.String({ maxLength: 512 }), {
    default: [],
    description: 'A JSON array of issuers whose CI tokens machines may trust: https, or http on this machine.',
  }),
  ...authSettings.reauth,
  GATEWAY__HTTP__PUBLIC_ORIGIN: authSettings.origins.GATEWAY__HTTP__PUBLIC_ORIGIN,
  ...authSettings.providers,
  ...authSettings.local,
  ...authSettings.webauthn,
  ...authSettings.tokens,
  ...authSettings.jwks,
  ...authSettings.services,
})

export const loadIdentityConfig = (env: NodeJS.ProcessEnv = process.env) => {
  const config = loadConfig(schema, env)
  const unsafe = config.AUTH__MACHINES__ISSUERS.find((issuer) => !isSafeUrl(issuer))
  if (unsafe !== undefined) throw new ConfigError(`AUTH__MACHINES__ISSUERS names ${unsafe}: use its https address.`)
  const origin = new URL(config.GATEWAY__HTTP__PUBLIC_ORIGIN)
  const webauthn = { rp_id: rpIdOf(config), origins: [origin.origin, ...config.AUTH__WEBAUTHN__ORIGINS] }
  const foreign = webauthn.origins.find(
    (one) => !URL.canParse(one) || !`.${new URL(one).hostname}`.endsWith(`.${webauthn.rp_id}`),
  )
  if (foreign !== undefined)
    throw new ConfigError(
      `AUTH__WEBAUTHN__RP_ID is ${webauthn.rp_id}: it must be the domain of ${foreign} or of a parent.`,
    )
  return { ...config, break_glass: emergencyNames(config), webauthn, production: env.NODE_ENV === 'production' }
}
export type IdentityConfig = ReturnType<typeof loadIdentityConfig>
