import { createHmac } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttp } from '../../activities/executors/http/run.ts'
import { checked } from '../../activities/executors/index.ts'
import { loadPolicy } from '../../activities/executors/policy.ts'
import type { ExecutorContext } from '../../activities/executors/types.ts'
import { RETRYABLE } from '../../apps/shared/contracts/operations/graph.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'

type Seen = { method: string; url: string; headers: IncomingMessage['headers'] }
const seen: Seen[] = []
let handler: (req: IncomingMessage, res: ServerResponse) => void = (_req, res) => void res.end()
let server: Server
let other: Server
let base = ''
let otherBase = ''

const listen = (target: Server) =>
  new Promise<string>((resolve) =>
    target.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(target.address() as AddressInfo).port}`)),
  )

beforeAll(async () => {
  server = createServer((req, res) => {
    seen.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers })
    handler(req, res)
  })
  other = createServer((req, res) => {
    seen.push({ method: req.method ?? '', url: `other${req.url}`, headers: req.headers })
    res.end('{}')
  })
  base = await listen(server)
  otherBase = await listen(other)
})
afterAll(() => {
  for (const target of [server, other]) {
    target.closeAllConnections()
    target.close()
  }
})

const folder = mkdtempSync(join(tmpdir(), 'policy-'))
const policyOf = (text: string, name = 'policy.yaml') => {
  writeFileSync(join(folder, name), text)
  return loadPolicy(join(folder, name))
}

const policy = policyOf(
  `format: signalbox/executor-policy@1
pools:
  default:
    destinations: [{ scheme: http, host: '*', networks: [127.0.0.0/8], ports: ['1024-65535'] }]
    secrets: ['secret://file/fleet-*']
  shut: { destinations: [{ scheme: http, host: '*', networks: [10.0.0.0/8], ports: ['1024-65535'] }], secrets: [] }
  tempting: { destinations: [{ scheme: http, host: '*', networks: [0.0.0.0/0, '::/0'], ports: ['1-65535'] }], secrets: [] }`,
)
const executor = checked(createHttp(policy))

const run = (values: Record<string, unknown>, more: Partial<ExecutorContext> = {}) => {
  const lines: string[] = []
  const artifacts: unknown[] = []
  const checkpoints: unknown[] = []
  const context: ExecutorContext = {
    operation_id: 'op',
    node_id: 'n',
    role: 'run',
    generation: 1,
    attempt: 1,
    fence: 7,
    key: 'op:n:1',
    pool: 'default',
    with: values,
    secrets: {},
    timeouts: { run_s: 20 },
    idempotent: false,
    slice_end: Date.now() + 10_000,
    deadline: Date.now() + 20_000,
    signal: new AbortController().signal,
    leave: new AbortController().signal,
    resume: null,
    repeated: false,
    checkpoint: async (resume) => {
      checkpoints.push(resume)
      return true
    },
    log: (text) => void lines.push(text),
    stored: async () => {},
    artifact: (artifact) => void artifacts.push(artifact),
    ...more,
  }
  seen.length = 0
  return executor.run(context).then((result) => ({ result, lines, artifacts, checkpoints }))
}
const answer = (status: number, body: unknown, headers: Record<string, string> = {}) => {
  handler = (_req, res) =>
    void res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

describe('a call', () => {
  it('carries key and fence, and returns the response as the raw result', async () => {
    answer(200, { previous_release: '1' })
    const { result } = await run({
      base_url: base,
      headers: { Authorization: 'Bearer s3cret' },
      request: { method: 'POST', url: '/deploy', body: { release: '2' } },
    })
    expect(result).toMatchObject({ status: 'succeeded', raw: { status: 200, body: { previous_release: '1' } } })
    expect(seen[0]?.headers).toMatchObject({
      'idempotency-key': 'op:n:1',
      'x-fencing-token': '7',
      'accept-encoding': 'identity',
      authorization: 'Bearer s3cret',
    })
  })

  it('keeps a number beyond double precision as its text, and every other as a number', async () => {
    const exact = '[1e21,1.5E+21,-1e23,1152921504606846976,1152921504606847000,10000000000000000.0,-2.5,7]'
    handler = (_req, res) =>
      void res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`{"id":9007199254740993,"n":[1e999,-12345678901234567890,1.0000000000000000001e20],"exact":${exact}}`)
    const { result } = await run({ base_url: base, request: { method: 'GET', url: '/' } })
    const n = ['1e999', '-12345678901234567890', '1.0000000000000000001e20']
    expect(result).toMatchObject({ raw: { body: { id: '9007199254740993', n, exact: JSON.parse(exact) } } })
  })

  it.each([
    { headers: { Host: 'other' } },
    { request: { method: 'GET', url: '/', headers: { 'transfer-encoding': 'chunked' } } },
    { sign: { secret: 'x', header: 'host' } },
  ])('is not sent with headers of the connection: %j', async (given) => {
    answer(200, {})
    const { result } = await run({ base_url: base, request: { method: 'GET', url: '/' }, ...given })
    expect(result).toMatchObject({
      status: 'failed',
      class: 'refused',
      message: expect.stringContaining('must not set'),
    })
    expect(seen).toEqual([])
  })

  it('signs the bytes of its body, and neither polls nor redirects to another host carry the signature', async () => {
    const bodies: Buffer[] = []
    handler = async (req, res) => {
      for await (const chunk of req) bodies.push(chunk as Buffer)
      res.writeHead(req.url === '/moved' ? 307 : 200, { location: `${otherBase}/there` }).end('{}')
    }
    const sign = { secret: 'It is a secret to all', header: 'X-Hub-Signature-256' }
    const poll = { request: { method: 'GET', url: '/state' }, until: 'true', interval_s: 1, timeout_s: 5 }
    const body = { text: 'Grüße', n: 1 }
    const { lines } = await run({ base_url: base, sign, poll, request: { method: 'POST', url: '/hook', body } })
    const right = createHmac('sha256', sign.secret)
      .update(bodies[0] as Buffer)
      .digest('hex')
    expect(bodies[0]?.toString()).toBe(JSON.stringify(body))
    expect(seen.map(({ headers }) => headers['x-hub-signature-256'])).toEqual([`sha256=${right}`, undefined])
    expect(lines.join('\n')).not.toMatch(new RegExp(`secret to all|${right}`))
    await run({ base_url: base, sign, request: { method: 'POST', url: '/moved', body } })
    expect(seen.map(({ url, headers }) => [url, 'x-hub-signature-256' in headers])).toEqual([
      ['/moved', true],
      ['other/there', false],
    ])
    const { result } = await run({
      base_url: base,
      sign: { ...sign, secret: '' },
      request: { method: 'POST', url: '/' },
    })
    expect(result).toMatchObject({ status: 'failed', class: 'refused', message: expect.stringContaining('is empty') })
    expect(seen).toEqual([])
  })

  it('logs neither credentials nor bodies nor queries', async () => {
    answer(200, { token: 'geheim' })
    const { lines } = await run({
      base_url: base,
      headers: { authorization: 'Bearer s3cret' },
      request: { method: 'POST', url: '/x', query: { key: 'hidden' }, body: { pin: '1234' } },
    })
    expect(lines.join('\n')).toMatch(/POST .*\/x answered 200/)
    expect(lines.join('\n')).not.toMatch(/s3cret|geheim|hidden|1234/)
  })

  it.each([
    [429, 'remote_error'],
    [500, 'remote_error'],
    [503, 'remote_error'],
    [404, 'refused'],
    [409, 'refused'],
    [301, 'unexpected_response'],
  ])('answered %i fails as %s', async (status, kind) => {
    answer(status, {})
    expect((await run({ base_url: base, request: { method: 'POST', url: '/x' } })).result).toMatchObject({
      status: 'failed',
      class: kind,
    })
  })

  it.each([
    ['with a time to wait', { 'retry-after': '7' }, { class: 'remote_error', retry_after_s: 7 }],
    ['with no calls left', { 'x-ratelimit-remaining': '0' }, { class: 'remote_error' }],
    ['with calls left', { 'x-ratelimit-remaining': '12' }, { class: 'refused' }],
  ])('answered 403 %s, it knows a limit from a refusal', async (_, headers, end) => {
    answer(403, {}, headers)
    expect((await run({ base_url: base, request: { method: 'POST', url: '/x' } })).result).toMatchObject(end)
  })

  it.each([
    ['seconds', () => '12', 12],
    ['a date', () => new Date(Date.now() + 90_000).toUTCString(), 90],
    ['a date of the past', () => 'Sun, 06 Nov 1994 08:49:37 GMT', 0],
    ['a date of next year', () => new Date(Date.now() + 4e10).toUTCString(), 3600],
    ['neither', () => 'soon', undefined],
  ])('honors Retry-After that is %s', async (_, said, waits) => {
    answer(503, {}, { 'retry-after': said() })
    const { result } = await run({ base_url: base, request: { method: 'POST', url: '/x' } })
    const { retry_after_s: found } = result as { retry_after_s?: number }
    if (waits === undefined) expect(found).toBeUndefined()
    else expect(Math.abs(Number(found) - waits)).toBeLessThanOrEqual(3)
  })

  it("gives the target's reason only if the step names that part of the response", async () => {
    answer(500, { reason: 'cannot open the session store', token: 'geheim' })
    const request = { method: 'GET', url: '/health' }
    const { result, lines } = await run({ base_url: base, request, reason: '/body/reason' })
    expect(result).toMatchObject({ message: 'GET /health answered 500: cannot open the session store' })
    expect(lines).toEqual([expect.stringMatching(/\/health answered 500/), 'cannot open the session store'])
    // Whoever masks it cuts it afterwards: a part of a secret at a cut would show.
    answer(500, { reason: `${'x'.repeat(400)} s3cret` })
    const long = await run({ base_url: base, request, reason: '/body/reason' })
    expect([long.lines.join(), long.result.status === 'failed' && long.result.message]).toEqual([
      expect.stringContaining('s3cret'),
      expect.stringContaining('s3cret'),
    ])
    answer(500, { reason: { code: 7 } })
    expect((await run({ base_url: base, request, reason: '/body/reason' })).result).toMatchObject({
      message: 'GET /health answered 500',
    })
  })

  it('lets expect and fail_if decide, fail_if first', async () => {
    answer(200, { status: 'sick' })
    const request = { method: 'GET', url: '/health' }
    expect((await run({ base_url: base, request, expect: "response.body.status == 'healthy'" })).result).toMatchObject({
      class: 'unexpected_response',
    })
    expect(
      (
        await run({
          base_url: base,
          request,
          expect: 'response.status == 200',
          fail_if: "response.body.status == 'sick'",
        })
      ).result,
    ).toMatchObject({ class: 'condition_failed' })
    expect((await run({ base_url: base, request, expect: 'response.body.nothing.there' })).result).toMatchObject({
      class: 'expression_error',
    })
  })

  it('is unreachable if no server listens, and unknown if it is cut after sending', async () => {
    const url = `http://127.0.0.1:${await freePort()}/x`
    expect((await run({ request: { method: 'POST', url } })).result).toMatchObject({
      status: 'failed',
      class: 'unreachable',
    })
    handler = (req) => void req.socket.destroy()
    expect((await run({ base_url: base, request: { method: 'POST', url: '/x' } })).result).toMatchObject({
      status: 'unknown',
    })
    handler = () => {}
    expect((await run({ base_url: base, request: { method: 'POST', url: '/x', timeout_s: 1 } })).result).toMatchObject({
      status: 'unknown',
      message: expect.stringContaining('no answer in time'),
    })
  })

  it('refuses a response that is too large without reading it all', async () => {
    answer(200, 'x'.repeat(5000))
    expect(
      (await run({ base_url: base, request: { method: 'GET', url: '/x' }, max_response_bytes: 1000 })).result,
    ).toMatchObject({ class: 'unexpected_response' })
  })

  it('does not offer for repetition an effect whose response is too large or lacks an artifact', async () => {
    answer(201, 'x'.repeat(5000))
    const request = { method: 'POST', url: '/x' }
    expect((await run({ base_url: base, request, max_response_bytes: 1000 })).result).toMatchObject({
      status: 'unknown',
      final: true,
    })
    answer(503, 'x'.repeat(5000))
    expect((await run({ base_url: base, request, max_response_bytes: 1000 })).result).toMatchObject({
      status: 'failed',
      class: 'unexpected_response',
    })
    answer(200, {})
    const artifacts = [{ name: 'certificate', kind: 'other', media_type: 'text/plain', pointer: '/body/certificate' }]
    const { result } = await run({ base_url: base, request, artifacts })
    expect(result).toMatchObject({ status: 'failed', class: 'outputs_invalid' })
    expect(RETRYABLE.has((result as { class: string }).class)).toBe(false)
  })

  it('treats endlessly nested JSON as text', async () => {
    handler = (_req, res) =>
      void res.writeHead(200, { 'content-type': 'application/json' }).end('['.repeat(100_000) + ']'.repeat(100_000))
    const { result } = await run({ base_url: base, request: { method: 'GET', url: '/x' } })
    expect(result).toMatchObject({ status: 'succeeded', raw: { body: expect.stringMatching(/^\[{100000}/) } })
    answer(200, { a: [[[1]]] })
    expect((await run({ base_url: base, request: { method: 'GET', url: '/x' } })).result).toMatchObject({
      raw: { body: { a: [[[1]]] } },
    })
  })

  it('stores named parts of the response as artifacts', async () => {
    answer(200, { certificate: 'PEM' })
    const { artifacts } = await run({
      base_url: base,
      request: { method: 'POST', url: '/c' },
      artifacts: [{ name: 'c.pem', kind: 'certificate', media_type: 'text/plain', pointer: '/body/certificate' }],
    })
    expect(artifacts).toEqual([{ name: 'c.pem', kind: 'certificate', media_type: 'text/plain', content: 'PEM' }])
  })
})

describe('polling', () => {
  it('waits for the condition and never sends the call again', async () => {
    let asked = 0
    handler = (req, res) => {
      if (req.method === 'GET') asked += 1
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ connections: Math.max(0, 2 - asked) }))
    }
    const values = {
      base_url: base,
      request: { method: 'POST', url: '/drain' },
      poll: {
        request: { method: 'GET', url: '/status' },
        until: 'response.body.connections == 0',
        interval_s: 1,
        timeout_s: 30,
      },
    }
    const { result, checkpoints } = await run(values)
    expect(result.status).toBe('succeeded')
    expect(checkpoints).toMatchObject([{ raw: { status: 200 } }])
    expect(seen.map((request) => request.method)).toEqual(['POST', 'GET', 'GET'])
    expect(seen[1]?.headers['idempotency-key']).toBeUndefined()
  })

  it('ends a slice as pending and continues from there', async () => {
    answer(200, { connections: 3 })
    const values = {
      base_url: base,
      request: { method: 'POST', url: '/drain' },
      poll: {
        request: { method: 'GET', url: '/status' },
        until: 'response.body.connections == 0',
        interval_s: 1,
        timeout_s: 30,
      },
    }
    const first = (await run(values, { slice_end: Date.now() + 1500 })).result
    expect(first).toMatchObject({ status: 'pending', poll_after_s: 1 })
    answer(200, { connections: 0 })
    const second = (await run(values, { resume: (first as { resume: Record<string, unknown> }).resume })).result
    expect(second).toMatchObject({ status: 'succeeded', raw: { body: { connections: 3 } } })
    expect(seen.map((request) => request.method)).toEqual(['GET'])
  })

  it('asks no more often than a busy target allows', async () => {
    handler = (req, res) => void res.writeHead(req.method === 'GET' ? 429 : 200, { 'retry-after': '60' }).end()
    const poll = {
      request: { method: 'GET', url: '/status' },
      until: 'response.status == 200',
      ...{ interval_s: 1, timeout_s: 300 },
    }
    const more = { slice_end: Date.now() + 20_000, deadline: Date.now() + 600_000 }
    const { result } = await run({ base_url: base, request: { method: 'POST', url: '/drain' }, poll }, more)
    expect(result).toMatchObject({ status: 'pending', poll_after_s: 60 })
    expect(seen.map((request) => request.method)).toEqual(['POST', 'GET'])
    const short = { base_url: base, request: { method: 'POST', url: '/drain' }, poll: { ...poll, timeout_s: 5 } }
    expect((await run(short, more)).result).toMatchObject({
      class: 'condition_timeout',
      message: expect.stringContaining('it asks to wait 60 s, longer than the poll may last'),
    })
  })

  it('leaves a poll at once when the worker stops, and another continues without a second call', async () => {
    answer(200, { connections: 3 })
    const values = {
      base_url: base,
      request: { method: 'POST', url: '/drain' },
      poll: {
        request: { method: 'GET', url: '/status' },
        until: 'response.body.connections == 0',
        interval_s: 60,
        timeout_s: 300,
      },
    }
    const leave = new AbortController()
    const more = { leave: leave.signal, slice_end: Date.now() + 120_000, deadline: Date.now() + 600_000 }
    const going = run(values, more)
    await until(() => seen.length === 2)
    leave.abort()
    const first = (await going).result
    expect(first).toMatchObject({ status: 'pending', poll_after_s: 60 })
    answer(200, { connections: 0 })
    const second = (await run(values, { resume: (first as { resume: Record<string, unknown> }).resume })).result
    expect(second.status).toBe('succeeded')
    expect(seen.map((request) => request.method)).toEqual(['GET'])
  })

  it('gives up at its deadline', async () => {
    answer(200, { connections: 3 })
    const poll = {
      request: { method: 'GET', url: '/status' },
      until: 'response.body.connections == 0',
      interval_s: 1,
      timeout_s: 1,
    }
    const polled = async (method: string, context = {}) =>
      (await run({ base_url: base, request: { method, url: '/drain' }, poll }, context)).result
    // The call had its effect: it is repeated only where that changes no more.
    expect(await polled('POST')).toMatchObject({ class: 'condition_timeout', retryable: false })
    for (const result of [await polled('PUT'), await polled('POST', { idempotent: true })]) {
      expect(result).toMatchObject({ class: 'condition_timeout' })
      expect(result).not.toHaveProperty('retryable')
    }
    poll.timeout_s = 3600
    expect(await polled('PUT', { deadline: Date.now() + 500 })).toMatchObject({
      class: 'condition_timeout',
      message: expect.stringMatching(/did not become true within timeouts\.run_s of the step$/),
    })
  })
})

describe('destinations', () => {
  it.each([
    ['another pool', 'shut', () => `${base}/x`],
    ['the metadata address, even where all is allowed', 'tempting', () => 'http://169.254.169.254/latest/meta-data'],
    ['the metadata address written as one number', 'tempting', () => 'http://2852039166/latest'],
    ['the metadata address mapped into IPv6', 'tempting', () => 'http://[::ffff:169.254.169.254]/'],
    ['the metadata address in octal', 'tempting', () => 'http://0251.0376.0251.0376/'],
    ['https where only http is allowed', 'default', () => base.replace('http:', 'https:')],
    ['a pool that does not exist', 'nowhere', () => `${base}/x`],
  ])('%s is denied before a byte is sent', async (_what, pool, url) => {
    const { result } = await run({ request: { method: 'GET', url: url() } }, { pool })
    expect(result).toMatchObject({ status: 'failed', class: 'address_denied' })
    expect(seen).toEqual([])
  })

  it('checks redirects too, and leaves credentials behind on another host', async () => {
    handler = (_req, res) => void res.writeHead(302, { location: 'http://169.254.169.254/' }).end()
    expect((await run({ base_url: base, request: { method: 'GET', url: '/r' } })).result).toMatchObject({
      class: 'address_denied',
    })
    handler = (_req, res) => void res.writeHead(307, { location: `${otherBase}/next` }).end()
    const { result } = await run({
      base_url: base,
      headers: { authorization: 'Bearer s3cret' },
      request: { method: 'GET', url: '/r' },
    })
    expect(result.status).toBe('succeeded')
    expect(seen.at(-1)?.url).toBe('other/next')
    expect(seen.at(-1)?.headers.authorization).toBeUndefined()
  })

  it('follows no redirect endlessly, and none for a call that must not be repeated', async () => {
    handler = (_req, res) => void res.writeHead(302, { location: '/again' }).end()
    expect((await run({ base_url: base, request: { method: 'GET', url: '/r' } })).result).toMatchObject({
      class: 'unexpected_response',
    })
    expect(seen).toHaveLength(4)
    await run({ base_url: base, request: { method: 'POST', url: '/r' } })
    expect(seen).toHaveLength(1)
  })

  it('treats a redirect to an invalid address as the response, so the outcome is known', async () => {
    handler = (_req, res) => void res.writeHead(307, { location: 'http://[' }).end()
    const { result } = await run({ base_url: base, request: { method: 'POST', url: '/r' } })
    expect(result).toMatchObject({ status: 'failed', class: 'unexpected_response' })
    expect(seen).toHaveLength(1)
  })

  it('lets a pool resolve only its own secrets', () => {
    expect(policy.mayResolve('default', 'secret://file/fleet-token#1')).toBe(true)
    expect(policy.mayResolve('default', 'secret://file/database#1')).toBe(false)
    expect(policy.mayResolve('shut', 'secret://file/fleet-token#1')).toBe(false)
    expect(policy.mayResolve('nowhere', 'secret://file/fleet-token#1')).toBe(false)
  })

  it('a broken policy file stops the start with its name and the place', () => {
    const broken = 'format: signalbox/executor-policy@1\npools: { a: { destinations: [{ scheme: ftp }], secrets: [] } }'
    expect(() => policyOf(broken, 'p.yaml')).toThrow(/p\.yaml\/pools\/a/)
    expect(() => policyOf('format: [', 'q.yaml')).toThrow(/q\.yaml/)
    expect(() => loadPolicy(join(folder, 'missing.yaml'))).toThrow(/missing\.yaml/)
  })
})

it.each([
  ['without the headers, query and limits that are null', { headers: null, max_response_bytes: null, artifacts: null }],
  [
    'with members that no one reads',
    { request: { method: 'POST', url: 'HTTP', query: null, timeout_s: 600, more: 1 } },
  ],
  ['with a title of an artifact', { artifacts: [{ name: 'a', kind: 'k', media_type: 'm', pointer: '', title: 't' }] }],
  ['with a reason that is null', { reason: null, request: { method: 'POST', url: 'HTTP', timeout_s: null } }],
])('takes the output of another node as it always did: %s', async (_what, values: Record<string, unknown>) => {
  answer(200, {})
  const request = { method: 'POST', ...(values.request as object), url: base.replace('http:', 'HTTP:') }
  expect((await run({ ...values, request })).result).toMatchObject({ status: 'succeeded' })
  expect(seen).toHaveLength(1)
})

it('a repeat of work that may have begun ends unknown, where its inputs do not fit', async () => {
  const { result } = await run({ request: { method: 'POST', url: base }, reason: 7 }, { repeated: true })
  expect(result).toMatchObject({ status: 'unknown', class: 'refused', final: true })
  expect(seen).toEqual([])
})

const polling = (more: object) => ({
  poll: { request: { method: 'GET', url: '/' }, until: 'true', interval_s: 1, timeout_s: 5, ...more },
})
it.each([
  ['no request', {}],
  ['a request that is null', { request: null }],
  ['a request without a url', { request: { method: 'POST' } }],
  ['an empty poll', { poll: {} }],
  ['a poll that is null', { poll: null }],
  ['a condition that cannot be read', { expect: '(((' }],
  ['such a condition for its poll', polling({ until: ')' })],
  ['a condition that is neither true nor false', { expect: 'null' }],
  ['a condition that is no text', { expect: true }],
  ['a poll without an interval', polling({ interval_s: undefined })],
  ['a poll without a pause', polling({ interval_s: 0 })],
  ['a poll without an end', polling({ timeout_s: undefined })],
  ['a poll with an interval in words', polling({ interval_s: '5' })],
  ['a poll whose fail_if is no text', polling({ fail_if: false })],
  ['artifacts that are no list', { artifacts: {} }],
  ['an artifact without a pointer', { artifacts: [{ name: 'a', kind: 'report', media_type: 'text/plain' }] }],
  ['a timeout in words', { request: { method: 'POST', url: base, timeout_s: '5s' } }],
  ['a limit in words', { max_response_bytes: '1MB' }],
  ['a reason that is no text', { reason: 7 }],
  ['a signature that is null', { sign: null }],
  ['a condition that is null', { expect: null }],
])('sends no request for %s', async (_what, values) => {
  const request =
    'request' in values || Object.keys(values).length === 0 ? {} : { request: { method: 'POST', url: base } }
  expect((await run({ ...request, ...values })).result).toMatchObject({ status: 'failed', class: 'refused' })
  expect(seen).toEqual([])
})
