import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Identity } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { AppError } from '../../apps/shared/errors.ts'
import { createHttpApp, type HttpApp } from '../../apps/shared/http/app.ts'
import { AUTH_CODES } from '../../apps/shared/http/edge-codes.ts'
import {
  createRpcClient,
  fromRpc,
  registerRpc,
  rpcContext,
  rpcService,
  withRequestId,
} from '../../apps/shared/rpc/client.ts'
import { loadRegistry, type Registry } from '../../apps/shared/service/tokens.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { testServices } from '../support/services.ts'

let services: ReturnType<typeof testServices>
let registry: Registry
let app: HttpApp
let url: string
let seen: { service: string; request_id: string; user_id: string }[]
let behave: (context: HandlerContext) => unknown

beforeAll(async () => {
  services = testServices()
  registry = loadRegistry(services.registry_file)
  app = createHttpApp({ telemetry: createTelemetry('test', { level: 'silent' }), codes: AUTH_CODES })
  const scopes = {
    authenticateMachine: 'machines:authenticate',
    getUser: 'identity:read',
    getUserByUsername: 'identity:read',
    getPrincipal: 'identity:read',
    listPrincipals: 'audit:read',
    getPreferences: 'identity:read',
    resolveExternal: 'identity:federate',
    previewExternal: 'identity:federate',
    linkExternal: 'identity:federate',
    listExternal: 'identity:read',
    unlinkExternal: 'identity:federate',
    listPasskeys: 'identity:read',
    addPasskey: 'passkeys:write',
    removePasskey: 'passkeys:write',
    verifyAssertion: 'passkeys:verify',
    getOwnedMachine: 'identity:read',
  }
  registerRpc(app, {
    registry,
    audience: 'identity-internal',
    services: [
      rpcService(Identity, scopes, {
        getUser: async ({ id }, context) => {
          const { service, request_id } = rpcContext(context)
          seen.push({ service: service.name, request_id, user_id: id })
          await behave(context)
          return {}
        },
        getUserByUsername: () => ({}),
        getPrincipal: () => ({}),
        listPrincipals: () => ({}),
        getPreferences: () => ({}),
        resolveExternal: () => ({}),
        previewExternal: () => ({}),
        linkExternal: () => ({}),
        listExternal: () => ({}),
        unlinkExternal: () => ({}),
        authenticateMachine: () => ({}),
        listPasskeys: () => ({}),
        addPasskey: () => ({}),
        removePasskey: () => ({}),
        verifyAssertion: () => ({}),
        getOwnedMachine: () => ({}),
      }),
    ],
  })
  url = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await app.close()
  registry.close()
  services.remove()
})
beforeEach(() => {
  seen = []
  behave = () => {}
})

const clientOf = (at = url, timeout_ms = 2000) =>
  createRpcClient(Identity, { url: at, signer: services.signer('session'), audience: 'identity-internal', timeout_ms })
const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error: unknown) => ConnectError.from(error).code,
  )

describe('a call', () => {
  it('carries the caller and the id of its request', async () => {
    await clientOf().getUser({ id: 'u1' }, withRequestId('request-0001'))
    expect(seen).toEqual([{ service: 'session', request_id: 'request-0001', user_id: 'u1' }])
  })
  it('needs the scope of its method', async () => {
    expect(await codeOf(clientOf().listPrincipals({}))).toBe(Code.PermissionDenied)
  })
  it('without a service token, or with a user beside it, does not reach the handler', async () => {
    const post = (headers: Record<string, string>) =>
      fetch(`${url}/signalbox.auth.v1.Identity/GetUser`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{}',
      })
    const authorization = `Bearer ${services.signer('session')('identity-internal')}`
    expect((await post({})).status).toBe(401)
    expect((await post({ authorization, 'x-user-id': 'u1' })).status).toBe(400)
    expect(seen).toEqual([])
    expect((await post({ authorization })).status).toBe(200)
  })
  it('reveals nothing of an unexpected failure', async () => {
    behave = () => {
      throw new Error('secret detail')
    }
    const error = ConnectError.from(
      await clientOf()
        .getUser({})
        .catch((e: unknown) => e),
    )
    expect([error.code, error.rawMessage]).toEqual([Code.Internal, 'unexpected'])
  })
  it('maps our own refusals to their codes', async () => {
    const refuse = (error: AppError) => {
      behave = () => Promise.reject(error)
      return codeOf(
        createRpcClient(Identity, { url, signer: services.signer('gateway'), audience: 'identity-internal' }).getUser(
          {},
        ),
      )
    }
    expect(await refuse(new AppError('validation_error', 'schema_violation', 'x'))).toBe(Code.InvalidArgument)
    expect(await refuse(new AppError('rate_limited', 'rate_limited', 'x'))).toBe(Code.ResourceExhausted)
    // The service answers, so its callers' breakers must not count it.
    expect(await refuse(new AppError('unavailable', 'login_busy', 'x'))).toBe(Code.ResourceExhausted)
    expect(await refuse(new AppError('version_conflict', 'in_progress', 'x'))).toBe(Code.FailedPrecondition)
  })
})

describe('the trace of a request', () => {
  it('continues in every call made for it, and in no other', async () => {
    const front = createHttpApp({ telemetry: createTelemetry('test', { level: 'silent' }), codes: AUTH_CODES })
    const client = clientOf()
    front.post('/ask', async (req) => client.getUser(req.body as { id: string }).then(() => ({})))
    const traces = new Map<string, unknown>()
    behave = async (context) => {
      const id = seen.at(-1)?.user_id ?? ''
      if (id.startsWith('second ')) return traces.set(id, context.requestHeader.get('traceparent'))
      await client.getUser({ id: `second ${id}` })
    }
    const at = await front.listen({ host: '127.0.0.1', port: 0 })
    const ask = (id: string, traceparent?: string) =>
      fetch(`${at}/ask`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(traceparent && { traceparent }) },
        body: JSON.stringify({ id }),
      })
    const trace = (n: number) => `00-${String(n).padStart(32, '0')}-00f067aa0ba902b7-01`
    try {
      await Promise.all([1, 2, 3].map((n) => ask(`u${n}`, trace(n))))
      await ask('none')
      await ask('forged', '00-no trace at all')
      expect(Object.fromEntries(traces)).toEqual({
        'second u1': trace(1),
        'second u2': trace(2),
        'second u3': trace(3),
        'second none': null,
        'second forged': null,
      })
    } finally {
      await front.close()
    }
  })
})

describe('the deadline of a call', () => {
  const raw = (timeout_ms: string) =>
    fetch(`${url}/signalbox.auth.v1.Identity/GetUser`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'connect-timeout-ms': timeout_ms,
        authorization: `Bearer ${services.signer('session')('identity-internal')}`,
      },
      body: '{}',
    })

  it("is 2 s, or the client's own, and travels with the call", async () => {
    const left: number[] = []
    behave = ({ timeoutMs }) => left.push(timeoutMs() ?? 0)
    const options = { url, signer: services.signer('session'), audience: 'identity-internal' }
    await createRpcClient(Identity, options).getUser({})
    await createRpcClient(Identity, { ...options, timeout_ms: 5000 }).getUser({})
    expect(left[0]).toBeGreaterThan(1500)
    expect(left[0]).toBeLessThanOrEqual(2000)
    expect(left[1]).toBeGreaterThan(4500)
    expect(left[1]).toBeLessThanOrEqual(5000)
  })
  it('also ends the call at the server, and informs the handler', async () => {
    let aborted: boolean | undefined
    behave = ({ signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = signal.aborted
          resolve(undefined)
        })
      })
    const begun = performance.now()
    const answer = await raw('50')
    expect([answer.status, await answer.json()]).toMatchObject([504, { code: 'deadline_exceeded' }])
    expect(performance.now() - begun).toBeLessThan(1500)
    expect(aborted).toBe(true)
  })
  it('is at most 8 s, whatever the caller asks', async () => {
    let left = 0
    behave = ({ timeoutMs }) => {
      left = timeoutMs() ?? Number.POSITIVE_INFINITY
    }
    for (const asked of ['3600000', 'soon', '-1']) {
      expect((await raw(asked)).status).toBe(200)
      expect(left).toBeLessThanOrEqual(8000)
      expect(left).toBeGreaterThan(7000)
    }
  })
})

describe('an outage', () => {
  let broken: http.Server
  let calls: number
  let listener: http.RequestListener
  beforeEach(async () => {
    calls = 0
    broken = http.createServer((req, res) => {
      calls += 1
      listener(req, res)
    })
    await new Promise<void>((resolve) => broken.listen(0, '127.0.0.1', resolve))
  })
  afterEach(() => {
    broken.closeAllConnections()
    broken.close()
  })
  const brokenUrl = () => `http://127.0.0.1:${(broken.address() as AddressInfo).port}`

  it('of a moment is bridged by one retry of a read', async () => {
    listener = (req, res) => {
      if (calls === 1) req.socket.destroy()
      else res.writeHead(200, { 'content-type': 'application/proto' }).end()
    }
    await expect(clientOf(brokenUrl()).getUser({ id: 'x' })).resolves.toBeDefined()
    expect(calls).toBe(2)
  })
  it('that lasts costs at most one retry in ten calls', async () => {
    listener = (req) => void req.socket.destroy()
    const client = clientOf(brokenUrl())
    for (let i = 0; i < 20; i++) expect(await codeOf(client.getUser({ id: 'x' }))).not.toBe('ok')
    expect(calls).toBeLessThanOrEqual(23)
  })
  it('is 503 dependency_down for the caller, also for a silent server within the deadline', async () => {
    listener = () => {}
    const started = performance.now()
    const error = await clientOf(brokenUrl(), 200)
      .getUser({})
      .catch((e: unknown) => e)
    expect(performance.now() - started).toBeLessThan(1500)
    expect(fromRpc('identity', error)).toMatchObject({ status: 503, code: 'dependency_down' })
    expect(fromRpc('identity', new ConnectError('full', Code.ResourceExhausted))).toMatchObject({
      status: 503,
      code: 'login_busy',
    })
    const defect = new ConnectError('bad', Code.InvalidArgument)
    expect(fromRpc('identity', defect)).toBe(defect)
  })
})
