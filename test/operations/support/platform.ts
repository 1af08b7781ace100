import { createPrivateKey, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { ConnectError, Code as RpcCode } from '@connectrpc/connect'
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import { buildApp } from '../../../apps/operations/app.ts'
import { loadOperationsConfig } from '../../../apps/operations/config.ts'
import type { OperationsDeps, Trust } from '../../../apps/operations/deps.ts'
import { openLibrary } from '../../../apps/operations/packs/open.ts'
import { createAdministrators, createApprovers, createHasMembers } from '../../../apps/operations/people.ts'
import { createDeps } from '../../../apps/operations/wire.ts'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { createCommandSender } from '../../../apps/relay/commands/send.ts'
import { createEngine } from '../../../apps/relay/commands/temporal.ts'
import type { RelayConfig } from '../../../apps/relay/config.ts'
import { sequenceOnce } from '../../../apps/relay/events/sequencer.ts'
import { startLoop } from '../../../apps/relay/loop.ts'
import { createPrincipals } from '../../../apps/shared/auth/principals.ts'
import { createAccessVerifier } from '../../../apps/shared/auth/user-tokens.ts'
import { systemClock } from '../../../apps/shared/clock.ts'
import { entryOf } from '../../../apps/shared/contracts/categories.ts'
import { type Category, CODES, type Code } from '../../../apps/shared/contracts/codes.ts'
import { PrincipalSchema, UserKind, UserStatus } from '../../../apps/shared/contracts/gen/auth_pb.ts'
import type { Problem } from '../../../apps/shared/errors.ts'
import { prefixed } from '../../../apps/shared/events/events.ts'
import type { Document } from '../../../apps/shared/http/openapi.ts'
import { newJti, signToken } from '../../../apps/shared/jwt/sign.ts'
import { createServiceKey } from '../../../apps/shared/service/keys.ts'
import { loadRegistry } from '../../../apps/shared/service/tokens.ts'
import { createTelemetry } from '../../../apps/shared/telemetry.ts'
import { createDb } from '../../../db/client.ts'
import { serverUrl, testDatabase } from '../../support/database.ts'
import { startLink } from '../../support/link.ts'
import { testServices } from '../../support/services.ts'
import { until } from '../../support/until.ts'
import { createTestPasskeys } from './passkeys.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ISSUER = 'http://localhost'
const AUDIENCE = 'signalbox-api'
/** A commit wakes the relay's loops; rows that a test writes itself wait this long. */
const UNWOKEN_MS = 100

type Scope = { regionId?: string; typeKey?: string }
export type Person = {
  id: string
  name: string
  roles: string[]
  groups: string[]
  scope?: Scope
  /** Of single roles, in place of `scope`. */
  scopes?: Record<string, Scope>
  disabled?: boolean
  /** When the roles end. */
  ends?: Date
  /** Rises with each change of rights. */
  version?: number
  /** How messages to the person are written. */
  zone?: string
  language?: string
  /** How the person has signed in; by password by default. */
  amr?: string[]
  /** Set for a machine: its credential's permissions, and who answers for it. */
  machine?: { permissions: string[]; behind: string[] }
  /** Who granted the roles, added the person to the groups or made the credential, and when. */
  given?: { [what in 'roles' | 'groups' | 'reset']?: { by: string; at: Date } }
  session_id: string
  /** Seconds since the password was proved. */
  auth_age_s: number
}
export const person = (name: string, roles: string[], groups: string[] = [], scope?: Scope): Person => ({
  id: randomUUID(),
  name,
  roles,
  groups,
  ...(scope && { scope }),
  session_id: randomUUID(),
  auth_age_s: 10,
})

export type Reply = {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any answer
  body: any
  text: string
  headers: Headers
}
export type Request = {
  key?: string | null
  headers?: Record<string, string>
  instance?: number
  raw?: string
  content_type?: string
}

const send = async (method: string, url: string, body: unknown, headers: Record<string, string>): Promise<Reply> => {
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
  if (response.status >= 400) requireListed(parsed)
  requireDescribed(method, url, response.status)
  return { status: response.status, body: parsed, text, headers: response.headers }
}

const described = Object.entries(
  (JSON.parse(readFileSync(join(ROOT, 'apps/shared/contracts/openapi/public.json'), 'utf8')) as Document).paths,
).map(([path, methods]) => ({ whole: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`), methods }))

/** The document of the public API lists the status of every answer that any test gets. */
const requireDescribed = (method: string, url: string, status: number): void => {
  const path = `/api${new URL(url).pathname}`
  const known = described.flatMap(({ whole, methods }) => {
    const operation = whole.test(path) ? methods[method.toLowerCase() as keyof typeof methods] : undefined
    return operation ? [operation] : []
  })
  if (known.length > 0 && known.every(({ responses }) => !responses[status]))
    throw new Error(`${method} ${path} answers ${status}, which its document does not list`)
}

/** Every refusal that any test gets must be in the closed table, with one of its statuses. */
const requireListed = (body: unknown): void => {
  const { category = '', code = '', status = 0 } = (body ?? {}) as Partial<Problem>
  const codes: Record<string, object> = CODES
  if (!(code in (codes[category] ?? {}))) throw new Error(`${category}/${code} is no refusal of the closed table`)
  const listed = entryOf(category as Category, code as Code).statuses
  if (!listed.includes(status)) throw new Error(`${category}/${code} refuses with ${status}; the table says ${listed}`)
}

/** Replaces identity: the people of this file, whom tests change at will. */
export const identityOf = (people: Record<string, Person>) => {
  const byWhom = (from: { by: string; at: Date } | undefined) =>
    from && { since: timestampFromDate(from.at), by: [from.by] }
  const principalOf = ({ id, name, roles, groups, scope, scopes, disabled, machine, given = {}, ...more }: Person) =>
    create(PrincipalSchema, {
      user: {
        id,
        username: name,
        status: disabled ? UserStatus.DISABLED : UserStatus.ACTIVE,
        kind: machine ? UserKind.MACHINE : UserKind.PERSON,
      },
      behind: machine?.behind ?? [],
      groupKeys: groups,
      grants: roles.map((role) => ({
        id: randomUUID(),
        role,
        scope: scopes?.[role] ?? scope ?? {},
        ...(more.ends && { expiresAt: timestampFromDate(more.ends) }),
        ...byWhom(given.roles),
      })),
      memberships: groups.map((groupKey) => ({ groupKey, ...byWhom(given.groups) })),
      ...(given.reset && { reset: { at: timestampFromDate(given.reset.at), by: [given.reset.by] } }),
      version: BigInt(more.version ?? 1),
    })
  const all = () => Object.values(people)
  return {
    /** It does not answer. */
    away: false,
    async getPrincipal({ userId }: { userId: string }) {
      if (this.away) throw new ConnectError('away', RpcCode.Unavailable)
      const found = all().find(({ id }) => id === userId)
      return found ? { principal: principalOf(found) } : {}
    },
    async getPreferences({ userId }: { userId: string }) {
      if (this.away) throw new ConnectError('away', RpcCode.Unavailable)
      const { zone = '', language = '' } = all().find(({ id }) => id === userId) ?? {}
      return { zone, language }
    },
    async listPrincipals({ role, groupKey }: { role?: string; groupKey?: string }) {
      if (this.away) throw new ConnectError('away', RpcCode.Unavailable)
      const found = all().filter(
        ({ roles, groups }) =>
          (role === undefined || roles.includes(role)) && (groupKey === undefined || groups.includes(groupKey)),
      )
      return { principals: found.map(principalOf), nextPageToken: '' }
    },
  }
}

const NONE_AFFECTED = { total: 0, at_least: false, unhealthy: 0, groups: [], watermark: '0' }
/**
 * The catalog as this app calls it: an empty log. Tests put resources into the projection, where they count as true.
 */
const emptyCatalog = (database_url: string) =>
  ({
    eventsAfter: async () => ({ items: [], last_pub_seq: '0' }),
    eventsOf: async () => ({ items: [], last_pub_seq: '0' }),
    snapshot: async () => ({ items: [], next: null, watermark: '0' }),
    document: async () => {
      throw new Error('there is no document')
    },
    types: async () => ({ types: [], relationship_types: [] }),
    affected: async () => ({ ...NONE_AFFECTED }),
    compareHealth: async () => [],
    versions: async (resource_ids: readonly string[]) => {
      const client = new pg.Client({ connectionString: database_url })
      await client.connect()
      const known = 'select resource_id, version::int from operations.catalog_resources where resource_id = any($1)'
      const { rows } = await client.query(known, [resource_ids])
      await client.end()
      return rows
    },
  }) as unknown as Trust['catalog']

export type Options = {
  instances?: number
  /** Packages of packs of each instance, as in the middle of an upgrade. */
  packages?: string[][]
  env?: Record<string, string>
  relay?: boolean
  /** Where the projection pulls from; an empty catalog by default. */
  catalog?: Trust['catalog']
  /** The app's connection to Postgres can be cut. */
  linked?: boolean
  /** Where the app finds its database, if not where the relay does: behind a pooler. */
  behind?: (url: string) => string
}

/** Operations as it runs: real Postgres, NATS and Temporal, app instances on their own ports, and the relay's loops. */
export const startPlatform = async ({
  packages = [],
  instances = Math.max(1, packages.length),
  env = {},
  relay = true,
  catalog: given_catalog,
  linked = false,
  behind = (url) => url,
}: Options = {}) => {
  const database = await testDatabase('operations')
  const catalog = given_catalog ?? emptyCatalog(database.url)
  const link = linked ? await startLink(database.url) : undefined
  const services = testServices()
  const prefix = `t${randomBytes(4).toString('hex')}`
  const artifacts_dir = mkdtempSync(join(tmpdir(), 'signalbox-artifacts-'))
  const people = {
    pia: person('pia', ['planner']),
    olga: person('olga', ['operator', 'planner'], ['netops']),
    eva: person('eva', ['approver'], ['netops']),
    ada: person('ada', ['approver'], ['netops', 'netops-leads']),
    ivo: person('ivo', ['approver'], ['storage']),
    both: person('both', ['operator', 'approver'], ['netops']),
    vic: person('vic', ['viewer']),
    aud: person('aud', ['auditor']),
    far: person('far', ['operator', 'approver', 'viewer'], ['netops'], { regionId: 'us1' }),
    eng: person('eng', ['engineer']),
    nobody: person('nobody', []),
  }
  const identity = identityOf(people)
  const { passkeys, enrol } = createTestPasskeys()
  const telemetry = () => createTelemetry('operations')
  const config = loadOperationsConfig({
    OPERATIONS__DATABASE__URL: link?.url ?? behind(database.url),
    OPERATIONS__NATS__URL: serverUrl('NATS_URL'),
    OPERATIONS__SECRET__KEYS: JSON.stringify(
      Array.from({ length: instances }, () => randomBytes(32).toString('base64')),
    ),
    OPERATIONS__PROJECTION__MAX_LAG_MS: '60000',
    OPERATIONS__COMMANDS__WAIT_MS: '600',
    AUTH__TOKENS__ISSUER: ISSUER,
    SIGNALBOX__NATS__PREFIX: prefix,
    OPERATIONS__ARTIFACTS__DIR: artifacts_dir,
    ...env,
  })
  const jwks = { get: (kid: string) => (kid === 'k1' ? publicKey : undefined), find: async () => 'unknown' }
  const { private_jwk } = createServiceKey()
  const evidence_key = { kid: private_jwk.kid, private_key: createPrivateKey({ key: private_jwk, format: 'jwk' }) }
  const ended = new Set<string>()
  const trustOf = (): Trust => ({
    verifier: createAccessVerifier({
      jwks: jwks as never,
      issuer: ISSUER,
      audience: AUDIENCE,
      skew_s: 5,
      clock: systemClock,
    }),
    principals: createPrincipals({ identityClient: identity as never, ttl_ms: 50, outage: 'internal_error' }),
    passkeys,
    isActive: async (_user_id, session_id) => !ended.has(session_id),
    offerSignOut: async (user_id) => {
      if (identity.away) throw new Error('session is away')
      return `so1.${user_id}`
    },
    approvers: createApprovers(identity as never),
    administrators: createAdministrators(identity as never),
    preferences: (userId) => identity.getPreferences({ userId }),
    hasMembers: createHasMembers(identity as never),
    registry: loadRegistry(services.registry_file),
    evidence_key,
    catalog,
    close: () => {},
  })
  const running: {
    deps: OperationsDeps
    app: FastifyInstance
    url: string
    internal_url: string
    stop: () => Promise<void>
  }[] = []
  for (let n = 0; n < instances; n++) {
    const library = await openLibrary({ ...config, ...(packages[n] && { OPERATIONS__PACKS__PACKAGES: packages[n] }) })
    // Each signs with another key, as in the middle of a rotation.
    const keys = config.OPERATIONS__SECRET__KEYS
    const own = { ...config, OPERATIONS__SECRET__KEYS: [...keys.slice(n), ...keys.slice(0, n)] }
    const deps = createDeps(own, trustOf(), library, { telemetry: telemetry() })
    const { app, internal } = await buildApp(deps)
    deps.nats.onConnect((nc) => {
      nc.subscribe(prefixed(prefix, 'wake.operations_outcome'), {
        callback: (_error, { data }) => deps.outcomes.hear(data),
      })
    })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const internal_url = await internal.listen({ host: '127.0.0.1', port: 0 })
    running.push({
      deps,
      app: app as unknown as FastifyInstance,
      url,
      internal_url,
      stop: async () => {
        await app.close()
        await internal.close()
        deps.outcomes.close()
        deps.trust.registry.close()
        await deps.nats.close()
        await deps.closeDb()
      },
    })
  }
  const first = running[0]
  if (!first) throw new Error('at least one instance')
  const pool = new pg.Pool({ connectionString: database.url, max: 5 })
  await first.deps.projection.catchUp()
  const carrier = relay ? await startCarrier(database.url, prefix, first.deps.nats) : undefined

  const tokenOf = ({ id, name, session_id, auth_age_s, machine, amr = ['pwd'] }: Person, { lives_s = 900 } = {}) => {
    const iat = Math.floor(Date.now() / 1000) - (900 - lives_s)
    return signToken(
      'access',
      {
        iss: ISSUER,
        aud: AUDIENCE,
        sub: id,
        iat,
        exp: iat + 900,
        jti: newJti(),
        type: 'access',
        username: name,
        session_id,
        auth_time: Math.min(iat, Math.floor(Date.now() / 1000) - auth_age_s),
        amr,
        cm: 'json',
        ...(machine && { amr: ['key'], cm: 'machine' as const, scope: machine.permissions }),
      },
      { kid: 'k1', private_key: privateKey },
    )
  }

  const as = (who: keyof typeof people | Person) => {
    const caller = typeof who === 'string' ? people[who] : who
    const call =
      (method: string) =>
      (path: string, body?: unknown, options: Request = {}) => {
        const { key = method === 'GET' ? null : randomUUID(), headers = {}, instance = 0, raw, content_type } = options
        const url = `${running[instance]?.url}${path}`
        return send(method, url, raw ?? body, {
          authorization: `Bearer ${tokenOf(caller)}`,
          ...((body !== undefined || raw !== undefined) && { 'content-type': content_type ?? 'application/json' }),
          ...(key !== null && { 'idempotency-key': key }),
          ...headers,
        })
      }
    return {
      get: (path: string, options?: Request) => call('GET')(path, undefined, options),
      post: call('POST'),
      put: call('PUT'),
      delete: call('DELETE'),
    }
  }

  const service = (name: string) => {
    const call = (method: string) => (path: string, body?: unknown) =>
      send(method, `${first.internal_url}${path}`, body, {
        authorization: `Bearer ${services.signer(name)('operations-internal')}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      })
    return { post: call('POST'), get: call('GET'), put: call('PUT'), delete: call('DELETE') }
  }

  const query = async <R extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
    (await pool.query<R>(text, values)).rows

  /** On a busy machine the same request is sent again, under its key: it is done once. */
  const soon = async (by: keyof typeof people, path: string, body: object, headers = {}): Promise<Reply> => {
    const key = randomUUID()
    for (let tries = 1; ; tries++) {
      const reply = await as(by).post(path, body, { key, headers })
      if (reply.status !== 503 || tries === 5) return reply
      await delay(500)
    }
  }

  /** States and starts a graph through the public API, as pia and olga would. */
  const startOperation = async (
    graph: unknown,
    { by = 'olga' as keyof typeof people, more = {}, headers = {} } = {},
  ) => {
    await query('update operations.projection set at = clock_timestamp()')
    const stated = { kind: 'graph', title: 'a test', reason: 'to see', graph, ...more }
    const intent = must(await soon('pia', '/v1/intents', stated), 201)
    const plan = must(await soon('pia', `/v1/intents/${intent.body.intent_id}/plan-preview`, {}), 201)
    const { plan_id, plan_hash } = plan.body
    const started = await soon(by, `/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash }, headers)
    if (started.status !== 201 && started.status !== 202) throw new Error(`start: ${started.status} ${started.text}`)
    return {
      operation_id: started.body.operation_id as string,
      plan_id: plan_id as string,
      intent_id: intent.body.intent_id as string,
      started,
    }
  }

  /** Brings a gate to waiting as the engine does, for files that run without a worker. */
  const openGate = async (operation_id: string, gate_id: string) => {
    await query(
      `update operations.gates set status = 'waiting', waiting_since = clock_timestamp(), deadline_at = clock_timestamp() + interval '1 h'
       where operation_id = $1 and gate_id = $2`,
      [operation_id, gate_id],
    )
    await query(`update operations.operations set engine_status = 'blocked', open_gates = 1 where operation_id = $1`, [
      operation_id,
    ])
  }

  /** What a voter has read: digest and round. */
  const seen = async (operation_id: string, gate_id: string, who: keyof typeof people = 'eva') => {
    const { body } = must(await as(who).get(`/v1/operations/${operation_id}/gates/${gate_id}`), 200)
    return { reviewed_digest: body.digest as string, round: body.round as number }
  }

  return {
    /** The app's link to Postgres, if requested. */
    link,
    database_url: database.url,
    people,
    identity,
    /** Gives a person a passkey. */
    enrol,
    /** From now on session reports that this session is over. */
    endSession: (session_id: string) => void ended.add(session_id),
    evidence_key,
    config,
    prefix,
    running,
    deps: first.deps,
    services,
    as,
    service,
    tokenOf,
    query,
    startOperation,
    openGate,
    seen,
    delivered: (command_id: string) =>
      until(async () => {
        const [row] = await query<{ status: string }>(
          'select status from operations.operation_commands where command_id = $1',
          [command_id],
        )
        return row && row.status !== 'pending' && row.status !== 'sending' ? row.status : undefined
      }),
    stop: async () => {
      await carrier?.stop()
      await Promise.all(running.map((instance) => instance.stop()))
      await pool.end()
      link?.stop()
      services.remove()
      rmSync(artifacts_dir, { recursive: true, force: true })
      await database.drop()
    },
  }
}
export type Platform = Awaited<ReturnType<typeof startPlatform>>

/** The relay's loops for this app: they number its own log, and send commands to a queue that no one polls. */
const startCarrier = async (url: string, prefix: string, nats: OperationsDeps['nats']) => {
  const { pool } = createDb(url, { app: 'test', max: 8, statement_timeout_ms: 10_000 })
  const { log } = createTelemetry('relay', { level: process.env.LOG ?? 'silent' })
  const config = {
    RELAY__TEMPORAL__ADDRESS: serverUrl('TEMPORAL_ADDRESS'),
    RELAY__TEMPORAL__NAMESPACE: 'default',
    RELAY__TEMPORAL__QUEUE_PREFIX: prefix,
    RELAY__TEMPORAL__SEARCH_ATTRIBUTES: false,
    RELAY__COMMANDS__IN_FLIGHT: 64,
  } as RelayConfig
  const engine = createEngine(config)
  const notify = () => nats.wake('operations_outcome')
  const sender = createCommandSender({ pool, engine, config, log, notify, observe: () => {} })
  await pool.query(
    `insert into operations.relay_state as r (name, epoch, next) values ('relay', 1, 1) on conflict (name) do nothing`,
  )
  const sequence = startLoop('sequence', log, UNWOKEN_MS, async () => (await sequenceOnce(pool, 'operations', 1)) > 0)
  const commands = startLoop('commands', log, UNWOKEN_MS, sender.turn)
  sender.onFree(commands.wake)
  const wake = () => {
    sequence.wake()
    commands.wake()
  }
  nats.onConnect((nc) => void nc.subscribe(prefixed(prefix, 'wake.operations'), { callback: wake }))
  return {
    stop: async () => {
      await Promise.all([sequence.stop(), commands.stop()])
      await sender.drain()
      await engine.close()
      await pool.end()
    },
  }
}

export const must = (reply: Reply, ...statuses: number[]): Reply => {
  if (!statuses.includes(reply.status))
    throw new Error(`expected ${statuses.join('/')}, got ${reply.status}: ${reply.text}`)
  return reply
}

/** A refusal as its status, category and code. */
export const problem = ({ status, body }: Reply): string => `${status} ${body.category}/${body.code}`

/** One node behind a gate, and one before it. */
export const gated = (policy: Record<string, unknown> = {}) => ({
  nodes: [
    { node_id: 'before', executor: 'noop', with: {} },
    { node_id: 'behind', executor: 'noop', with: {}, depends_on: ['before'] },
  ],
  gates: [
    { gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] }, ...policy }, guards: ['behind'] },
  ],
})
