import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { Redis } from 'ioredis'
import { type Dispatcher, request as undiciRequest } from 'undici'
import { buildApp as buildCredential } from '../../../apps/credential/app.ts'
import { loadCredentialConfig } from '../../../apps/credential/config.ts'
import { createDeps as createCredentialDeps } from '../../../apps/credential/deps.ts'
import { buildApp as buildGateway } from '../../../apps/gateway/app.ts'
import { loadGatewayConfig } from '../../../apps/gateway/config.ts'
import { createDeps as createGatewayDeps } from '../../../apps/gateway/wire.ts'
import { buildApp as buildIdentity } from '../../../apps/identity/app.ts'
import { loadIdentityConfig } from '../../../apps/identity/config.ts'
import { insertUser } from '../../../apps/identity/users/new.ts'
import { createDeps as createIdentityDeps } from '../../../apps/identity/wire.ts'
import { startRelay } from '../../../apps/relay/app.ts'
import { loadRelayConfig } from '../../../apps/relay/config.ts'
import { createDeps as createRelayDeps } from '../../../apps/relay/wire.ts'
import { buildApp as buildSession } from '../../../apps/session/app.ts'
import { loadSessionConfig } from '../../../apps/session/config.ts'
import { createDeps as createSessionDeps } from '../../../apps/session/wire.ts'
import type { Clock } from '../../../apps/shared/clock.ts'
import { Credential } from '../../../apps/shared/contracts/gen/auth_pb.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { createRpcClient } from '../../../apps/shared/rpc/client.ts'
import { buildApp as buildToken } from '../../../apps/token/app.ts'
import { loadTokenConfig } from '../../../apps/token/config.ts'
import { createDeps as createTokenDeps } from '../../../apps/token/wire.ts'
import { users } from '../../../db/identity/tables.ts'
import { serverUrl, testDatabase } from '../../support/database.ts'
import { testServices } from '../../support/services.ts'

export const ORIGIN = 'http://console.test'
export const PASSWORD = 'Correct-Horse-7-Battery'
export const AGENT = 'Mozilla/5.0 (X11; Linux) Gecko/20100101 Firefox/140.0'

const key = () => randomBytes(32).toString('base64')
const HUGE = '1000000/1/1000000'

type Listening = {
  listen: (options: { host: string; port: number }) => Promise<string>
  close: () => PromiseLike<unknown>
}
const open = (app: Listening): Promise<string> => app.listen({ host: '127.0.0.1', port: 0 })

/**
 * The five auth apps in this process, on free loopback ports, with their own database and Redis prefix. Limits are out
 * of the way unless `env` says otherwise; hashes are cheap. `clock` is credential's clock.
 */
export const startAuth = async (env: Record<string, string> = {}, { clock }: { clock?: Clock } = {}) => {
  const database = await testDatabase('identity', 'credential', 'session', 'token')
  const services = testServices()
  const prefix = `t${randomBytes(6).toString('hex')}_`
  const console_dir = mkdtempSync(join(tmpdir(), 'signalbox-console-'))
  const apps = ['IDENTITY', 'CREDENTIAL', 'SESSION', 'TOKEN', 'GATEWAY', 'RELAY']
  const base: Record<string, string> = {
    UV_THREADPOOL_SIZE: '14',
    CREDENTIAL__HASH__MEMORY_KIB: '1024',
    CREDENTIAL__HASH__TIME: '2',
    CREDENTIAL__HASH__PARALLELISM: '1',
    CREDENTIAL__HASH__PER_KEY: '100',
    CREDENTIAL__ENROLMENT__KEY: key(),
    CREDENTIAL__FACTORS__KEK: key(),
    TOKEN__KEYS__KEK: key(),
    AUTH__SECRET__KEYS: JSON.stringify([key()]),
    AUTH__SERVICES__FILE: services.registry_file,
    AUTH__TOKENS__ISSUER: ORIGIN,
    AUTH__REDIS__PREFIX: prefix,
    SIGNALBOX__NATS__PREFIX: prefix.slice(0, -1),
    GATEWAY__HTTP__PUBLIC_ORIGIN: ORIGIN,
    GATEWAY__CONSOLE__DIR: console_dir,
    RELAY__AUDIT__KEY_FILE: services.keyFile('relay'),
    RELAY__AUDIT__ANCHOR_FILE: join(console_dir, 'audit-anchors.jsonl'),
    // The test process runs five apps: its own slowness is not Redis's.
    GATEWAY__REDIS__TIMEOUT_MS: '3000',
    SESSION__REDIS__TIMEOUT_MS: '3000',
    ...Object.fromEntries(
      [
        'LOGIN_IP',
        'LOGIN_NAME',
        'REFRESH_IP',
        'PAGE_IP',
        'SSO_IP',
        'API',
        'FAILED_TOKENS',
        'JWKS',
        'ENROL',
        'DEVICE',
        'MACHINE',
        'LOGOUT',
      ].map((n) => [`GATEWAY__LIMITS__${n}`, HUGE]),
    ),
    ...Object.fromEntries(['REFRESH', 'PASSWORD', 'LOGIN_FAILURES'].map((n) => [`SESSION__LIMITS__${n}`, HUGE])),
  }
  for (const app of apps) {
    base[`${app}__DATABASE__URL`] = database.url
    base[`${app}__REDIS__URL`] = serverUrl('REDIS_URL')
    base[`${app}__NATS__URL`] = serverUrl('NATS_URL')
    base[`${app}__SECRET__KEYS`] = JSON.stringify([key(), key()])
    base[`${app}__SERVICE__KEY_FILE`] = services.keyFile(app.toLowerCase())
  }
  const vars = { ...base, ...env }

  const token_deps = await createTokenDeps(loadTokenConfig(vars))
  const token = buildToken(token_deps)
  vars.AUTH__RPC__TOKEN_URL = await open(token.internal)
  vars.GATEWAY__UPSTREAM__TOKEN_URL = await open(token.app)
  vars.AUTH__JWKS__URL = `${vars.GATEWAY__UPSTREAM__TOKEN_URL}/jwks`
  const credential_deps = await createCredentialDeps(loadCredentialConfig(vars), clock && { clock })
  const credential = buildCredential(credential_deps)
  vars.AUTH__RPC__CREDENTIAL_URL = await open(credential.app)
  const identity_deps = createIdentityDeps(loadIdentityConfig(vars))
  const identity = buildIdentity(identity_deps)
  vars.AUTH__RPC__IDENTITY_URL = await open(identity.internal)
  vars.GATEWAY__UPSTREAM__IDENTITY_URL ??= await open(identity.app)
  await identity_deps.jwks.start()

  const redis = new Redis(serverUrl('REDIS_URL'))
  const stops: (() => PromiseLike<unknown>)[] = []
  /** One session process; a test may have several. */
  const addSession = async (more: Record<string, string> = {}) => {
    const deps = createSessionDeps(loadSessionConfig({ ...vars, ...more }))
    await deps.redis.connect()
    await deps.revocations.check()
    await deps.jwks.start()
    const { app, internal } = buildSession(deps)
    const url = await open(app)
    const rpc_url = await open(internal)
    stops.push(() => Promise.all([app.close(), internal.close()]).then(() => deps.close()))
    return { deps, app, internal, url, rpc_url }
  }
  const session = await addSession()
  vars.GATEWAY__UPSTREAM__SESSION_URL ??= session.url
  vars.AUTH__RPC__SESSION_URL = session.rpc_url

  const addGateway = async (more: Record<string, string> = {}) => {
    const deps = createGatewayDeps(loadGatewayConfig({ ...vars, ...more }), { version: '1.2.3' })
    await deps.settled()
    const { server, internal } = buildGateway(deps)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    stops.push(async () => {
      server.close()
      server.closeAllConnections()
      await internal.close()
      await deps.close()
    })
    return {
      deps,
      server,
      internal,
      url: `${deps.config.tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    }
  }

  /** The relay's auth side. */
  const addRelay = async (more: Record<string, string> = {}) => {
    const deps = await createRelayDeps(loadRelayConfig({ ...vars, ...more }))
    const relay = startRelay(deps, ['identity', 'credential', 'token'])
    let running = true
    const stop = async () => {
      if (!running) return
      running = false
      await relay.stop()
      await deps.nats.close()
      await deps.engine.close()
      deps.redis.disconnect()
      deps.redisReader.disconnect()
      await deps.pool.end()
    }
    stops.push(stop)
    return { deps, stop }
  }

  const passwords = createRpcClient(Credential, {
    url: vars.AUTH__RPC__CREDENTIAL_URL,
    signer: services.signer('identity'),
    audience: 'credential-internal',
    timeout_ms: 5000,
  })

  /** Sets a password as an enrolment does. */
  const setPassword = async ({ id, username }: { id: string; username: string }, password: string) => {
    const asked = { userId: id, changeId: uuidv7() }
    const { enrolmentToken } = await passwords.createEnrolmentToken(asked)
    const { violations } = await passwords.setPassword({
      ...asked,
      username,
      newPassword: password,
      enrolmentToken,
      queueKey: 'test',
    })
    if (violations.length > 0) throw new Error(`the test password is too weak: ${JSON.stringify(violations)}`)
  }

  /** A user with a password and these roles. */
  const addUser = async (username: string, roles: string[] = [], password = PASSWORD) => {
    const user = await identity_deps.db.transaction((tx) =>
      insertUser(
        tx,
        { username, grants: roles.map((role) => ({ role })) },
        { requested_by: 'system', confirmed_by: null, link: uuidv7() },
      ),
    )
    await setPassword(user, password)
    // The password was set without the link, which would say so.
    await identity_deps.db.update(users).set({ enrolled: true }).where(eq(users.id, user.id))
    return user
  }

  return {
    vars,
    prefix,
    redis,
    services,
    console_dir,
    session,
    identity_deps,
    token_deps,
    credential_deps,
    addSession,
    addGateway,
    addRelay,
    addUser,
    setPassword,
    stop: async () => {
      for (const stop of stops.reverse()) await stop()
      for (const { app, internal } of [token, identity]) {
        await app.close()
        await internal.close()
      }
      await credential.app.close()
      await Promise.all([token_deps.close(), identity_deps.close(), credential_deps.close()])
      const keys = await redis.keys(`${prefix}*`)
      if (keys.length > 0) await redis.del(keys)
      redis.disconnect()
      services.remove()
      rmSync(console_dir, { recursive: true, force: true })
      await database.drop()
    },
  }
}
export type Auth = Awaited<ReturnType<typeof startAuth>>

export type Answer = {
  status: number
  headers: Dispatcher.ResponseData['headers']
  text: string
  body: Record<string, unknown>
}
type Sent = {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'HEAD'
  body?: unknown
  headers?: Record<string, string>
}

/** Sends one request with exactly these headers (without those of a browser or a cookie jar). */
export const send = async (url: string, { method, body, headers = {} }: Sent = {}): Promise<Answer> => {
  const reply = await undiciRequest(url, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { 'user-agent': AGENT, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await reply.body.text()
  const json = /json/.test(String(reply.headers['content-type'])) && text !== ''
  return { status: reply.statusCode, headers: reply.headers, text, body: json ? JSON.parse(text) : {} }
}

export const bearer = (token: unknown) => ({ authorization: `Bearer ${String(token)}` })

/** The `name=value` of a cookie in the answer. */
export const cookieOf = (answer: Answer, name = 'refresh_token'): string => {
  const lines = [answer.headers['set-cookie'] ?? []].flat()
  return lines.find((line) => line.startsWith(`${name}=`))?.split(';')[0] ?? ''
}

/** The value of a counter, over all its labels that match. */
export const counted = async (
  metrics: { getMetricsAsJSON: () => Promise<{ name: string; values: { value: number; labels: object }[] }[]> },
  name: string,
  labels: Record<string, string> = {},
): Promise<number> => {
  const metric = (await metrics.getMetricsAsJSON()).find((one) => one.name === name)
  const fits = (found: object) =>
    Object.entries(labels).every(([label, value]) => String((found as Record<string, unknown>)[label]) === value)
  return (metric?.values ?? []).filter((value) => fits(value.labels)).reduce((sum, { value }) => sum + value, 0)
}
