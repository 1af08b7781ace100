import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { isNull, sql } from 'drizzle-orm'
import type { InjectOptions } from 'fastify'
import { buildApp as buildCredential } from '../../../apps/credential/app.ts'
import { loadCredentialConfig } from '../../../apps/credential/config.ts'
import { createDeps as createCredentialDeps } from '../../../apps/credential/deps.ts'
import { buildApp } from '../../../apps/identity/app.ts'
import { loadIdentityConfig } from '../../../apps/identity/config.ts'
import { bootstrapAdmin, enrolHere } from '../../../apps/identity/users/bootstrap.ts'
import { createDeps } from '../../../apps/identity/wire.ts'
import { joinHalves } from '../../../apps/shared/contracts/client/enrolment.ts'
import { newJti, signToken } from '../../../apps/shared/jwt/sign.ts'
import { outbox } from '../../../db/identity/tables.ts'
import { testDatabase } from '../../support/database.ts'
import { startLink } from '../../support/link.ts'
import { testServices } from '../../support/services.ts'

export const PASSWORD = 'Tr0mbone-Glacier-Napkin'
const ISSUER = 'http://localhost:8080'

type App = ReturnType<typeof buildApp>['app']
type Sent = { body?: unknown; key?: string; headers?: Record<string, string>; auth_time?: number; at?: App }
export type Change = {
  id: string
  digest: string
  status: string
  subject: { gives: string[] }
  user_id: string | null
}
type Reply = { status: number; body: Record<string, unknown> & { code?: string }; headers: Record<string, unknown> }

/** Identity and credential on their own database, and a published key under which the test signs user tokens. */
export const startIdentity = async ({ linked = false } = {}) => {
  const services = testServices()
  const database = await testDatabase('identity', 'credential')
  const link = linked ? await startLink(database.url) : undefined
  const signing = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwks = JSON.stringify({
    keys: [{ ...signing.publicKey.export({ format: 'jwk' }), kid: 'test', alg: 'RS256', use: 'sig' }],
  })
  const server = http.createServer((_req, res) => res.end(jwks))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const credential_env = {
    CREDENTIAL__DATABASE__URL: database.url,
    CREDENTIAL__ENROLMENT__KEY: randomBytes(32).toString('base64'),
    CREDENTIAL__FACTORS__KEK: randomBytes(32).toString('base64'),
    CREDENTIAL__HASH__MEMORY_KIB: '1024',
    CREDENTIAL__HASH__PARALLELISM: '1',
    UV_THREADPOOL_SIZE: '16',
    AUTH__SERVICES__FILE: services.registry_file,
  }
  const credentialDeps = await createCredentialDeps(loadCredentialConfig(credential_env))
  const credential = buildCredential(credentialDeps).app
  const credential_url = await credential.listen({ host: '127.0.0.1', port: 0 })

  const env = {
    IDENTITY__DATABASE__URL: link?.url ?? database.url,
    IDENTITY__SECRET__KEYS: JSON.stringify([1, 2].map(() => randomBytes(32).toString('base64'))),
    IDENTITY__SERVICE__KEY_FILE: services.keyFile('identity'),
    AUTH__RPC__CREDENTIAL_URL: credential_url,
    AUTH__SERVICES__FILE: services.registry_file,
    AUTH__TOKENS__ISSUER: ISSUER,
    AUTH__JWKS__URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
  }
  const deps = createDeps(loadIdentityConfig(env))
  const { app, internal } = buildApp(deps)
  const rpc_url = await internal.listen({ host: '127.0.0.1', port: 0 })

  const tokenOf = (user_id: string, auth_time = Math.floor(Date.now() / 1000)) => {
    const iat = Math.floor(Date.now() / 1000)
    return signToken(
      'access',
      {
        iss: ISSUER,
        sub: user_id,
        aud: 'signalbox-api',
        type: 'access',
        iat,
        exp: iat + 900,
        jti: newJti(),
        username: 'x',
        session_id: randomUUID(),
        auth_time,
        amr: ['pwd'],
        cm: 'json',
      },
      { kid: 'test', private_key: signing.privateKey },
    )
  }

  const send = async (
    method: string,
    url: string,
    user_id: string | undefined,
    { body, key = randomUUID(), headers, auth_time, at = app }: Sent = {},
  ): Promise<Reply> => {
    const authorization = user_id && `Bearer ${tokenOf(user_id, auth_time)}`
    const options: InjectOptions = {
      method: method as 'GET',
      url,
      headers: {
        ...(authorization && { authorization }),
        ...(method !== 'GET' && { 'idempotency-key': key }),
        ...headers,
      },
      ...(body !== undefined && { payload: body as object }),
    }
    const reply = await at.inject(options)
    return { status: reply.statusCode, body: reply.body ? reply.json() : {}, headers: reply.headers }
  }

  /** Requests as one user; `undefined` sends them without a user. */
  const as = (user_id: string | undefined) => ({
    user_id,
    send: (method: string, url: string, body?: unknown) => send(method, url, user_id, { body }),
    get: (url: string, more: Sent = {}) => send('GET', url, user_id, more),
    post: (url: string, body?: unknown, more: Sent = {}) => send('POST', url, user_id, { ...more, body }),
    put: (url: string, more: Sent = {}) => send('PUT', url, user_id, more),
    patch: (url: string, body: unknown, more: Sent = {}) => send('PATCH', url, user_id, { ...more, body }),
    delete: (url: string, more: Sent = {}) => send('DELETE', url, user_id, more),
  })
  type As = ReturnType<typeof as>

  const bootstrap = { db: deps.db, audit_key: deps.keys.audit, credential: deps.credential }
  const enrol = (token: string, new_password = PASSWORD, more: Sent = {}) =>
    as(undefined).post('/v1/users/enrol', { enrolment_token: token, new_password }, more)

  /** The first administrator, created by the command and the link. */
  const firstAdmin = async (username = 'ada'): Promise<As> => {
    const { token } = await bootstrapAdmin(bootstrap, username, ['admin'])
    const reply = await enrol(token)
    if (reply.status !== 204) throw new Error(JSON.stringify(reply.body))
    return as(token.split('.')[1])
  }
  /** A new user with these roles, everywhere. */
  const newUser = async (
    admin: As,
    roles: string[] = [],
    username = `u-${randomBytes(4).toString('hex')}`,
  ): Promise<As & { user_id: string; username: string; token: string }> => {
    const reply = await admin.post('/v1/admin/users', { username, grants: roles.map((role) => ({ role })) })
    if (reply.status !== 201) throw new Error(JSON.stringify(reply.body))
    const { user, enrolment } = reply.body as { user: { id: string }; enrolment: { token: string } }
    return { ...as(user.id), user_id: user.id, username, token: enrolment.token }
  }
  /** Another administrator, admitted by the operator of the machine: from now on two check each other. */
  const secondAdmin = async (username = 'carl', roles = ['admin']): Promise<As & { user_id: string }> => {
    const { token } = await enrolHere(bootstrap, username, roles)
    const reply = await enrol(token)
    if (reply.status !== 204) throw new Error(JSON.stringify(reply.body))
    const user_id = token.split('.')[1] ?? ''
    return { ...as(user_id), user_id }
  }
  /** The change as it is now. */
  const change = async (admin: As, id: string): Promise<Change> => {
    const { body } = await admin.get('/v1/admin/changes?page_size=500')
    if (!body.items) throw new Error(JSON.stringify(body))
    const found = (body.items as Change[]).find((item) => item.id === id)
    if (!found) throw new Error(`no change ${id}`)
    return found
  }
  /** Confirms a change as it is now. */
  const confirm = async (admin: As, id: string, more: Sent = {}): Promise<Reply> =>
    admin.post(`/v1/admin/changes/${id}/confirm`, { digest: (await change(admin, id)).digest }, more)
  /** A user whom two administrators create, and who enrolls with both halves of the link. */
  const newUserByTwo = async (
    [one, other]: readonly [As, As],
    roles: string[] = [],
    username = `u-${randomBytes(4).toString('hex')}`,
  ): Promise<As & { user_id: string; username: string }> => {
    const asked = await one.post('/v1/admin/users', { username, grants: roles.map((role) => ({ role })) })
    const { id } = asked.body.change as { id: string }
    const confirmed = await confirm(other, id)
    if (confirmed.status !== 200) throw new Error(JSON.stringify(confirmed.body))
    const { user_id = '' } = confirmed.body.change as { user_id?: string }
    const token = await tokenOfHalves([one, other], id)
    const enrolled = await enrol(token)
    if (enrolled.status !== 204) throw new Error(JSON.stringify(enrolled.body))
    return { ...as(user_id), user_id, username }
  }
  /** The token that the person makes from both halves. */
  const tokenOfHalves = async (parties: readonly [As, As], id: string): Promise<string> => {
    const halves = await Promise.all(parties.map((admin) => admin.post(`/v1/admin/changes/${id}/half`)))
    const [first = '', second = ''] = halves.map(({ body }) => (body.half as { token: string }).token)
    return joinHalves(first, second) ?? ''
  }
  /** Acts as the relay, which marks a row after it has ended the sessions. */
  const relay = { runs: true }
  const marking = setInterval(() => {
    if (!relay.runs) return
    deps.db
      .update(outbox)
      .set({ published_at: sql`clock_timestamp()` })
      .where(isNull(outbox.published_at))
      .catch(() => {})
  }, 20)

  return {
    /** The app's link to Postgres, if requested. */
    link,
    env,
    deps,
    app,
    services,
    rpc_url,
    credential,
    credentialDeps,
    bootstrap,
    as,
    enrol,
    firstAdmin,
    newUser,
    secondAdmin,
    change,
    confirm,
    newUserByTwo,
    tokenOfHalves,
    relay,
    stop: async () => {
      clearInterval(marking)
      await app.close()
      await internal.close()
      await deps.close()
      await credential.close()
      await credentialDeps.close()
      server.closeAllConnections()
      server.close()
      link?.stop()
      await database.drop()
      services.remove()
    },
  }
}
export type TestIdentity = Awaited<ReturnType<typeof startIdentity>>
