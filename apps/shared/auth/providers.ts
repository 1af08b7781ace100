import { readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { parse } from 'yaml'
import { ConfigError } from '../config.ts'
import { Closed } from '../contracts/shapes.ts'
import { ROLES, type Role } from './permissions.ts'

/** The providers file as a deployer writes it (federation.md 4). Unknown members stop the start. */
const Key = Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' })
const Algorithm = Type.Enum(['RS256', 'PS256', 'ES256', 'EdDSA'])
const RoleName = Type.Enum([...ROLES])
const Given = Closed({ groups: Type.Optional(Type.Array(Type.String())), roles: Type.Optional(Type.Array(RoleName)) })
const Texts = Type.Array(Type.String({ minLength: 1, maxLength: 255 }))
const Provider = Closed({
  id: Key,
  title: Type.String({ minLength: 1, maxLength: 64 }),
  enabled: Type.Boolean({ default: true }),
  issuer: Type.String({ pattern: '^https?://' }),
  client_id: Type.String({ minLength: 1 }),
  client_secret: Type.String({ pattern: '^secret://file/[A-Za-z0-9._-]{1,64}$' }),
  scopes: Type.Array(Type.String({ pattern: '^[\\x21-\\x7e]+$' }), { default: ['openid', 'profile', 'email'] }),
  algorithms: Type.Array(Algorithm, { default: ['RS256'], minItems: 1 }),
  username_claim: Type.String({ default: 'preferred_username', minLength: 1 }),
  /** Domains of verified e-mail addresses that may sign in; empty: any. */
  allowed_domains: Type.Array(Type.String({ pattern: '^[a-z0-9.-]+$' }), { default: [] }),
  groups: Type.Optional(
    Closed({ claim: Type.String({ default: 'groups', minLength: 1 }), map: Type.Record(Type.String(), Given) }),
  ),
  /** The highest role that the mapping may grant, directly or through a group. */
  max_role: Type.Enum([...ROLES], { default: 'planner' }),
  jit: Closed(
    {
      enabled: Type.Boolean({ default: false }),
      require_group: Type.Optional(Texts),
      /** Claims of the ID token and their values, as text. */
      require_claims: Type.Optional(Type.Record(Type.String(), Type.String({ minLength: 1 }))),
    },
    { default: { enabled: false } },
  ),
  /** The machine that maintains people and groups by SCIM, and the sign-in claim that equals their externalId. */
  scim: Type.Optional(
    Closed({
      machine: Type.String({ pattern: '^machine:[a-z][a-z0-9-]{0,49}$' }),
      match: Type.Enum(['sub', 'oid'], { default: 'sub' }),
    }),
  ),
  /** Methods of sign-in (RFC 8176), such as mfa, of which the provider must name at least one; empty: any. */
  require_amr: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { default: [] }),
  /** Maximum lifetime of a session, in seconds. */
  session_max_s: Type.Integer({ default: 43_200, minimum: 300, maximum: 2_592_000 }),
})
const File = Closed({ format: Type.Literal('signalbox/providers@1'), providers: Type.Array(Provider) })
export type Provider = Static<typeof Provider> & { secret_file: string }

/** From lowest to highest: a ceiling allows all roles up to it. */
const LADDER: readonly Role[] = ['viewer', 'auditor', 'engineer', 'planner', 'operator', 'approver', 'admin']
/** Whether a role is above what this provider may grant. */
export const isAbove = ({ max_role }: Pick<Provider, 'max_role'>, role: string): boolean =>
  LADDER.indexOf(role as Role) > LADDER.indexOf(max_role)

/** Returns how a right granted by a provider names its giver. */
export const giverOf = (provider_id: string): string => `provider:${provider_id}`

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])
/** Issuers that sign for the tenants of all customers; the id is that of Microsoft's private accounts. */
const EVERYBODY = /^\/(common|organizations|consumers|9188040d-6c67-4c5b-b112-36a304b66dad)(\/|$)/
/** It signs for private accounts, which may have a verified address of a company; `hd` names the company. */
const GOOGLE = 'https://accounts.google.com'

/** Returns why this provider cannot be used; `undefined` if it can. */
const refuseProvider = (provider: Static<typeof Provider>, production: boolean): string | undefined => {
  const url = URL.canParse(provider.issuer) ? new URL(provider.issuer) : undefined
  if (!url || url.search || url.hash || url.username) return 'issuer: is no plain URL; copy it from the provider.'
  if (url.protocol === 'http:' && (production || !LOOPBACK.has(url.hostname)))
    return 'issuer: is not https; a provider is reached over TLS.'
  if (EVERYBODY.test(url.pathname)) return 'issuer: signs for every tenant; name the issuer of your own tenant.'
  if (!provider.scopes.includes('openid')) return 'scopes: openid is missing; without it there is no ID token.'
  for (const [name, { roles = [] }] of Object.entries(provider.groups?.map ?? {})) {
    const above = roles.find((role) => isAbove(provider, role))
    if (above) return `groups.map.${name}: ${above} is above max_role ${provider.max_role}; raise it or map less.`
  }
  const { jit } = provider
  if (jit.require_group && !provider.groups) return 'jit.require_group: needs groups.claim and groups.map.'
  const { require_claims = {} } = jit
  if (jit.enabled && url.origin === GOOGLE && !Object.hasOwn(require_claims, 'hd'))
    return "jit: signs for private accounts too, also with a company's address; set require_claims: { hd: example.com }."
  const required = [jit.require_group ?? [], provider.allowed_domains, Object.keys(require_claims)]
  if (production && jit.enabled && required.every(({ length }) => length === 0))
    return 'jit: anyone at this issuer could create an account; set require_group, require_claims or allowed_domains.'
  return undefined
}

/** Reads the file. Throws a ConfigError that names the member, the fault and the remedy. */
export const loadProviders = (file: string, production: boolean): Provider[] => {
  const fail = (message: string) => new ConfigError(`${file}: ${message}`)
  let value: unknown
  try {
    value = Value.Default(File, parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw fail(`cannot be read (${(error as Error).message.split('\n')[0]}).`)
  }
  const [wrong] = Value.Errors(File, value)
  if (wrong) {
    const fault = wrong.message === 'schema is false' ? 'is unknown; check its spelling' : wrong.message
    throw fail(`${wrong.instancePath.slice(1).replaceAll('/', '.') || 'the file'} ${fault}.`)
  }
  const { providers } = value as Static<typeof File>
  for (const [at, provider] of providers.entries()) {
    const refusal = refuseProvider(provider, production)
    if (refusal) throw fail(`providers.${at}.${refusal}`)
    for (const name of ['id', 'issuer'] as const) {
      const same = providers.findIndex((other) => other[name] === provider[name])
      if (same !== at) throw fail(`providers.${at}.${name}: occurs twice; each provider needs its own.`)
    }
    const { scim } = provider
    if (scim && providers.findIndex((other) => other.scim?.machine === scim.machine) !== at)
      throw fail(`providers.${at}.scim.machine: occurs twice; each provider needs its own.`)
  }
  return providers.map((provider) => ({
    ...provider,
    secret_file: join(dirname(file), 'secrets', provider.client_secret.slice('secret://file/'.length)),
  }))
}

const REREAD_MS = 30_000

/**
 * The providers of this installation, from the file; none without a file. A changed file is read again. An unusable one
 * leaves the known providers in place, and is reported to `onError` each time; `onChange` hears of a usable one.
 */
export const watchProviders = (
  file: string | undefined,
  {
    production,
    onError,
    onChange = () => {},
  }: { production: boolean; onError: (error: unknown) => void; onChange?: () => void },
) => {
  let providers = file === undefined ? [] : loadProviders(file, production)
  let read_at = file === undefined ? 0 : statSync(file).mtimeMs
  let fault: string | null = null
  const reread = () => {
    if (file === undefined) return
    try {
      const { mtimeMs } = statSync(file)
      if (mtimeMs === read_at) {
        // The file that is in force may have been put back, with its time.
        fault = null
        return
      }
      providers = loadProviders(file, production)
      read_at = mtimeMs
      fault = null
      onChange()
    } catch (error) {
      fault = (error as Error).message.replace(`${file}: `, '')
      onError(error)
    }
  }
  const timer = setInterval(reread, REREAD_MS).unref()
  return {
    /** Those switched off too, which sign no one in. */
    all: (): Provider[] => providers,
    /** Why the file as it is now cannot be used; null if it is in force. */
    fault: (): string | null => fault,
    list: (): Provider[] => providers.filter(({ enabled }) => enabled),
    get: (id: string): Provider | undefined => providers.find((one) => one.id === id && one.enabled),
    reread,
    stop: () => clearInterval(timer),
  }
}
export type Providers = ReturnType<typeof watchProviders>
