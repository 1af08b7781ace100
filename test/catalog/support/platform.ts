import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { buildApp } from '../../../apps/catalog/app.ts'
import { loadCatalogConfig } from '../../../apps/catalog/config.ts'
import type { Trust } from '../../../apps/catalog/deps.ts'
import { createDeps } from '../../../apps/catalog/wire.ts'
import { sequenceOnce } from '../../../apps/relay/events/sequencer.ts'
import { createPrincipals } from '../../../apps/shared/auth/principals.ts'
import { createAccessVerifier } from '../../../apps/shared/auth/user-tokens.ts'
import { systemClock } from '../../../apps/shared/clock.ts'
import { Identity, PrincipalSchema, UserKind, UserStatus } from '../../../apps/shared/contracts/gen/auth_pb.ts'
import { createHttpApp, listen } from '../../../apps/shared/http/app.ts'
import { AUTH_CODES } from '../../../apps/shared/http/edge-codes.ts'
import { newJti, signToken } from '../../../apps/shared/jwt/sign.ts'
import { registerRpc, rpcService } from '../../../apps/shared/rpc/client.ts'
import { audienceOf } from '../../../apps/shared/service/scopes.ts'
import { loadRegistry } from '../../../apps/shared/service/tokens.ts'
import { serverUrl, testDatabase } from '../../support/database.ts'
import { startLink } from '../../support/link.ts'
import { freePort } from '../../support/ports.ts'
import { testServices } from '../../support/services.ts'
import { until } from '../../support/until.ts'
import { provesRebuild } from './rebuild.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ISSUER = 'http://localhost'
const AUDIENCE = 'signalbox-api'

type Scope = { regionId?: string; datacenterId?: string; segmentId?: string; typeKey?: string }
/** `grants`: used instead of one grant of `scope` for each role. */
export type Person = {
  id: string
  name: string
  roles: string[]
  scope: Scope
  grants?: { role: string; scope: Scope }[]
  /** A machine, and the permissions of its credential. */
  machine?: string[]
}
const person = (name: string, roles: string[], scope: Scope = {}): Person => ({ id: randomUUID(), name, roles, scope })

export type Reply = {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any answer
  body: any
  text: string
  headers: Headers
}
export type Ask = {
  key?: string | null
  headers?: Record<string, string>
  type?: string | null
  raw?: string
  /** Accepts a retryable refusal as the answer. */
  once?: boolean
  /** Another process of this catalog, by its `public_at`. */
  at?: string
}

const sendOnce = async (
  method: string,
  url: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Reply> => {
  const response = await fetch(url, {
    method,
    headers,
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  let parsed: unknown
  try {
    parsed = text === '' ? undefined : JSON.parse(text)
  } catch {
    parsed = undefined
  }
  return { status: response.status, body: parsed, text, headers: response.headers }
}

const TRIES = 20

/**
 * A well-behaved client: it sends retryable refusals (a busy database, a duplicate that still runs) again with the same
 * ids and content. Everything else is the answer.
 */
const send: typeof sendOnce = async (...request) => {
  for (let tries = 1; ; tries++) {
    const reply = await sendOnce(...request)
    if (reply.body?.retryable !== true || tries === TRIES) return reply
    await delay(100 + Math.random() * 400)
  }
}

const MAIN = new URL('../../../apps/catalog/main.ts', import.meta.url).pathname
const ROOT = new URL('../../..', import.meta.url).pathname

/** `linked`: the app reaches its database through a link that can be watched. */
type Options = { env?: Record<string, string>; linked?: boolean }

/** The catalog as it runs: real Postgres and NATS, both listeners on their own ports; the clock can move forward. */
export const startCatalog = async ({ env = {}, linked = false }: Options = {}) => {
  const database = await testDatabase('catalog')
  const link = linked ? await startLink(database.url) : undefined
  const services = testServices()
  const people = {
    ada: person('ada', ['admin']),
    olga: person('olga', ['operator']),
    vic: person('vic', ['viewer']),
    far: person('far', ['operator', 'viewer'], { regionId: 'us1' }),
    hosts: person('hosts', ['operator', 'viewer'], { typeKey: 'infra.host' }),
    nobody: person('nobody', []),
    plane: { ...person('machine:plane', ['controller']), machine: ['catalog:read', 'catalog:record'] } as Person,
    /** Each test sets her grants. */
    rover: person('rover', []),
  }
  const settings = {
    CATALOG__DATABASE__URL: link?.url ?? database.url,
    CATALOG__NATS__URL: serverUrl('NATS_URL'),
    CATALOG__SECRET__KEYS: JSON.stringify([randomBytes(32).toString('base64')]),
    AUTH__TOKENS__ISSUER: ISSUER,
    SIGNALBOX__NATS__PREFIX: `t${randomBytes(4).toString('hex')}`,
    ...env,
  }
  const config = loadCatalogConfig(settings)
  const identity = {
    getPrincipal: async ({ userId }: { userId: string }) => {
      const found = Object.values(people).find(({ id }) => id === userId)
      if (!found) return {}
      const { id, name, roles, scope, machine, grants: own = roles.map((role) => ({ role, scope })) } = found
      const user = { id, username: name, status: UserStatus.ACTIVE, ...(machine && { kind: UserKind.MACHINE }) }
      const grants = own.map((grant) => ({ id: randomUUID(), ...grant }))
      return { principal: create(PrincipalSchema, { user, grants, groupKeys: [], version: 1n }) }
    },
  }
  const trust: Trust = {
    verifier: createAccessVerifier({
      jwks: { get: () => publicKey, find: async () => 'unknown' } as never,
      issuer: ISSUER,
      audience: AUDIENCE,
      skew_s: 5,
      clock: systemClock,
    }),
    principals: createPrincipals({ identityClient: identity, ttl_ms: 0, outage: 'internal_error' }),
    services: loadRegistry(services.registry_file),
    signer: services.signer('catalog'),
    close: () => {},
  }
  let ahead_ms = 0
  const clock = { now: () => new Date(Date.now() + ahead_ms) }
  const deps = await createDeps(config, trust, { clock })
  const { app, internal } = await buildApp(deps)
  const url = await listen(app, '127.0.0.1', 0)
  const internal_url = await listen(internal, '127.0.0.1', 0)
  const { rows } = await deps.pool.query('select 1 from catalog.relay_state')
  if (rows.length === 0)
    await deps.pool.query(`insert into catalog.relay_state (name, epoch, next) values ('relay', 1, 1)`)

  const tokenOf = ({ id, name, machine }: Person): string => {
    const iat = Math.floor(Date.now() / 1000)
    const common = { iss: ISSUER, aud: AUDIENCE, sub: id, iat, exp: iat + 900, jti: newJti(), type: 'access' as const }
    const claims = {
      ...common,
      username: name,
      session_id: randomUUID(),
      auth_time: iat,
      amr: ['pwd' as const],
      cm: 'json' as const,
      ...(machine && { amr: ['key' as const], cm: 'machine' as const, scope: machine }),
    }
    return signToken('access', claims, { kid: 'test', private_key: privateKey })
  }

  const as = (name: keyof typeof people) => {
    const call = (
      method: string,
      path: string,
      body?: unknown,
      { key, headers = {}, type, raw, once, at = url }: Ask = {},
    ) =>
      (once ? sendOnce : send)(method, `${at}${path}`, raw ?? body, {
        authorization: `Bearer ${tokenOf(people[name])}`,
        ...((body !== undefined || raw !== undefined) &&
          type !== null && { 'content-type': type ?? 'application/json' }),
        ...(method !== 'GET' && key !== null && { 'idempotency-key': key ?? randomUUID() }),
        ...headers,
      })
    return {
      get: (path: string, ask?: Ask) => call('GET', path, undefined, ask),
      post: (path: string, body: unknown, ask?: Ask) => call('POST', path, body, ask),
      patch: (path: string, body: unknown, ask: Ask = {}) =>
        call('PATCH', path, body, { type: 'application/merge-patch+json', ...ask }),
      /** Registers something that exists; throws if the catalog refuses it. */
      record: async (body: Record<string, unknown>) => {
        const reply = await call('POST', '/v1/resources?mode=record_only', body)
        if (reply.status !== 201) throw new Error(`${reply.status} ${reply.text}`)
        return reply.body
      },
    }
  }

  /** A control plane's call to the internal listener, of this process or of the one at `at`. */
  const internally = (
    method: string,
    path: string,
    body?: unknown,
    ask: Ask & { service?: string; at?: string } = {},
  ) => {
    const { service = 'demo-control-plane', headers = {}, type, raw, once, at = internal_url } = ask
    return (once ? sendOnce : send)(method, `${at}/internal/v1${path}`, raw ?? body, {
      authorization: `Bearer ${services.signer(service)(audienceOf('catalog'))}`,
      ...((body !== undefined || raw !== undefined) && type !== null && { 'content-type': type ?? 'application/json' }),
      ...headers,
    })
  }

  /** The keys and principals of this file for a catalog that runs as a separate process. */
  const startTrust = async () => {
    const rpc = createHttpApp({ telemetry: deps.telemetry, codes: AUTH_CODES, internal: true })
    const scopes = Object.fromEntries(Identity.methods.map(({ localName }) => [localName, 'identity:read']))
    const served = rpcService(Identity, scopes as never, identity as never)
    registerRpc(rpc, { registry: trust.services, audience: audienceOf('identity'), services: [served] })
    rpc.get('/jwks', async () => ({
      keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'RS256' }],
    }))
    return { rpc, at: await listen(rpc, '127.0.0.1', 0) }
  }
  let beside: ReturnType<typeof startTrust> | undefined

  const children: ChildProcess[] = []
  /** A second catalog as a separate process on the same database; `crash_at` names where it kills itself. */
  const startProcess = async (
    crash_at?: string,
    env: Record<string, string> = {},
  ): Promise<{ at: string; public_at: string; exited: Promise<unknown> }> => {
    beside ??= startTrust()
    const trusted = (await beside).at
    const [port, internal_port] = [await freePort(), await freePort()]
    const child = spawn(process.execPath, [MAIN], {
      cwd: ROOT,
      stdio: 'ignore',
      env: {
        ...process.env,
        ...settings,
        CATALOG__HTTP__PORT: String(port),
        CATALOG__INTERNAL__PORT: String(internal_port),
        CATALOG__SERVICE__KEY_FILE: services.keyFile('catalog'),
        AUTH__SERVICES__FILE: services.registry_file,
        AUTH__JWKS__URL: `${trusted}/jwks`,
        AUTH__RPC__IDENTITY_URL: trusted,
        ...(crash_at !== undefined && { SIGNALBOX_CRASH_AT: crash_at }),
        ...env,
      },
    })
    children.push(child)
    const exited = once(child, 'exit')
    const at = `http://127.0.0.1:${internal_port}`
    const ready = async () => (await fetch(`${at}/health/ready`).catch(() => undefined))?.ok
    await until(async () => child.exitCode !== null || (await ready()), {
      what: 'another catalog process',
      timeout_ms: 60_000,
    })
    // Another program took its port in between: retries with other ports.
    const public_at = `http://127.0.0.1:${port}`
    return child.exitCode === null ? { at, public_at, exited } : startProcess(crash_at, env)
  }

  const catalog = {
    deps,
    link,
    startProcess,
    config,
    services,
    people,
    url,
    internal_url,
    tokenOf,
    as,
    internally,
    /** A ResourceUpdateCommand with its own ids; `over` replaces the parts under test. */
    result: (
      resource_id: string,
      over: Record<string, unknown>,
      ask: Ask & { service?: string; path_id?: string; at?: string } = {},
    ) => {
      const command = {
        command_id: randomUUID(),
        idempotency_key: randomUUID(),
        operation_id: randomUUID(),
        resource_id,
        changes: {},
        ...over,
      }
      return internally('POST', `/resources/${ask.path_id ?? resource_id}/apply-operation-result`, command, ask)
    },
    observe: (resource_id: string, over: Record<string, unknown> = {}) =>
      internally('POST', `/resources/${resource_id}/health-observations`, {
        command_id: randomUUID(),
        idempotency_key: randomUUID(),
        resource_id,
        source: 'test',
        check_key: 'http',
        status: 'healthy',
        observed_at: clock.now().toISOString(),
        ttl_s: 60,
        ...over,
      }),
    /** Numbers all committed events and waits until the graph in memory holds them. */
    followed: async () => {
      while (await sequenceOnce(deps.pool, 'catalog', 1));
      const { rows } = await deps.pool.query<{ head: string }>(
        'select coalesce(max(pub_seq), 0)::text as head from catalog.outbox',
      )
      const head = BigInt(rows[0]?.head ?? 0)
      await until(() => BigInt(deps.graph.store()?.watermark ?? -1) >= head, {
        what: 'the graph at the end of the log',
      })
    },
    /** Numbers committed events, as the relay does. */
    sequence: () => sequenceOnce(deps.pool, 'catalog', 1),
    wait: (ms: number) => {
      ahead_ms += ms
    },
    rows: async <T>(text: string, values: unknown[] = []): Promise<T[]> =>
      (await deps.pool.query(text, values)).rows as T[],
    /** Everything that a request could leave behind: the rows of every table of the catalog, and all versions. */
    traces: async (): Promise<Record<string, string>> => {
      const tables = await deps.pool.query<{ name: string }>(
        `select tablename as name from pg_tables where schemaname = 'catalog' order by 1`,
      )
      const counts = tables.rows.map(({ name }) => `(select count(*) from catalog.${name}) as ${name}`)
      const { rows } = await deps.pool.query(
        `select ${counts.join(', ')}, (select sum(version + health_revision) from catalog.resource_state) as versions`,
      )
      return rows[0]
    },
  }
  return {
    ...catalog,
    /** Proves that this file's log rebuilds the state it leaves, then ends everything. */
    stop: async () => {
      try {
        await provesRebuild(catalog)
      } finally {
        for (const child of children) child.kill('SIGKILL')
        await app.close()
        await internal.close()
        await (await beside)?.rpc.close()
        await deps.close()
        link?.stop()
        trust.services.close()
        services.remove()
        await database.drop()
      }
    },
  }
}
export type Catalog = Awaited<ReturnType<typeof startCatalog>>

/** A region with a data center, a layer, a segment and hosts in it; ids start with the region's. */
export const seedRegion = async (c: Catalog, region: string, hosts = 2): Promise<string[]> => {
  const { record } = c.as('ada')
  await record({ resource_id: region, type_key: 'topology.region', name: region, desired_state: { code: region } })
  await record({ resource_id: `${region}-a`, type_key: 'topology.datacenter', name: `${region}-a`, parent_id: region })
  await record({
    resource_id: `${region}-a-edge`,
    type_key: 'topology.layer',
    name: 'edge',
    parent_id: `${region}-a`,
    desired_state: { layer_kind: 'edge' },
  })
  await record({
    resource_id: `${region}-a-web`,
    type_key: 'topology.segment',
    name: 'web',
    parent_id: `${region}-a-edge`,
  })
  const ids = Array.from({ length: hosts }, (_, i) => `${region}-web-${String(i + 1).padStart(2, '0')}`)
  for (const id of ids) await record(hostOf(id, `${region}-a-web`))
  return ids
}

export const hostOf = (resource_id: string, parent_id: string) => ({
  resource_id,
  type_key: 'fleet.host',
  name: resource_id,
  parent_id,
  labels: { environment: 'test' },
  lifecycle_status: 'active',
  desired_state: { hostname: resource_id, release: '1.0.0', traffic: 'in' },
  observed_state: {
    hostname: resource_id,
    base_url: `http://127.0.0.1:1/${resource_id}`,
    release: '1.0.0',
    traffic: 'in',
  },
})
