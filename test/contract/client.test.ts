import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createSignalbox, events, ProblemError, read, type SignalboxOptions } from '../../apps/client/index.ts'
import { pause } from '../../apps/client/send.ts'
import { until } from '../support/until.ts'
import { ROLES, startOperation, startWorld, type World } from './world.ts'

it('does not wait after a signal that has already ended', async () => {
  await expect(pause(60_000, AbortSignal.abort('over'))).rejects.toBe('over')
})

/** The client generated from the document, against the started platform. */
describe('the client', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({
      apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway'],
    })
    await world.addUser('zoe', ROLES)
  }, 120_000)
  afterAll(() => world?.stop(), 60_000)

  const client = (options: Omit<SignalboxOptions, 'url'> = {}) =>
    createSignalbox({ url: world.stack.gateway_url, ...options })
  const signIn = async (password = world.password) => {
    const body = { grant_type: 'password' as const, username: 'zoe', password }
    return (await read(client().POST('/v1/token', { body }))).access_token
  }

  it('signs in, lists, approves and gets the exact reason of a refusal', async () => {
    const token = await signIn()
    const signalbox = client({ token })
    const { operation_id } = await startOperation(world, token)
    const inbox = await until(
      async () => {
        const { items } = await read(signalbox.GET('/api/v1/gates', { params: { query: { for: 'me' } } }))
        return items.find((gate) => gate.operation_id === operation_id)
      },
      { what: 'the gate in the inbox' },
    )
    const path = { operation_id, gate_id: inbox.gate_id }
    const gate = await read(signalbox.GET('/api/v1/operations/{operation_id}/gates/{gate_id}', { params: { path } }))
    const approve = () =>
      read(
        signalbox.POST('/api/v1/operations/{operation_id}/gates/{gate_id}/approve', {
          params: { path },
          body: { reviewed_digest: gate.digest, round: gate.round },
        }),
      )
    const approved = await approve()
    expect('status' in approved && approved.status).toBe('approved')
    const refused = await approve().catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(ProblemError)
    const { code, problem } = refused as ProblemError
    expect([problem.status, problem.category]).toEqual([409, 'gate_not_waiting'])
    expect(code).toMatch(/^already_(decided|consumed)$/)
  }, 60_000)

  it('renews a refused token once, and says so if there is no other', async () => {
    const ended = await signIn()
    expect(await read(client({ token: ended }).POST('/auth/logout'))).toBeUndefined()
    const asked: unknown[] = []
    const renewing = client({
      token: ended,
      renew: async (refused) => {
        asked.push(refused)
        return signIn()
      },
    })
    expect((await read(renewing.GET('/api/v1/users/me'))).username).toBe('zoe')
    expect(asked).toEqual([ended])
    const refused = await read(client({ token: ended }).GET('/api/v1/users/me')).catch((error: unknown) => error)
    expect((refused as ProblemError).code).toBe('invalid_token')
    const wrong = await signIn('wrong').catch((error: unknown) => error)
    expect((wrong as ProblemError).code).toBe('invalid_credentials')
  }, 60_000)

  it('follows changes as they happen', async () => {
    const token = await signIn()
    const ended = new AbortController()
    const seen: string[] = []
    let started: Promise<{ operation_id: string }> | undefined
    for await (const frame of events(client({ token }), { topics: ['operations'], signal: ended.signal })) {
      seen.push(frame.event)
      if (frame.event === 'hello') started = startOperation(world, token)
      if (frame.event === 'operation') ended.abort()
    }
    expect(seen[0]).toBe('hello')
    expect(seen.at(-1)).toBe('operation')
    await started
  }, 60_000)
})

/** A server that answers each request with the next of these. */
const withServer = async (
  answers: ((req: IncomingMessage, res: ServerResponse) => void)[],
  use: (url: string, heard: IncomingMessage[]) => Promise<void>,
) => {
  const heard: IncomingMessage[] = []
  const server = createServer((req, res) => {
    heard.push(req)
    req.resume().on('end', () => answers[Math.min(heard.length, answers.length) - 1]?.(req, res))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}
const refuse =
  (status: number, problem: object, headers = {}) =>
  (_req: IncomingMessage, res: ServerResponse) =>
    void res.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(JSON.stringify(problem))
const done = (_req: IncomingMessage, res: ServerResponse) => void res.writeHead(204).end()

describe('in an outage the client', () => {
  const busy = { code: 'overloaded', retryable: true, retry_after_ms: 20 }

  it('repeats only repeatable requests, with the same key', async () => {
    await withServer([refuse(503, busy), refuse(503, busy), done], async (url, heard) => {
      await read(createSignalbox({ url, token: 't' }).POST('/auth/logout'))
      const keys = heard.map(({ headers }) => headers['idempotency-key'])
      expect(keys.length).toBe(3)
      expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
      expect(new Set(keys).size).toBe(1)
    })
    await withServer([refuse(409, { code: 'already_decided', retryable: false })], async (url, heard) => {
      await expect(read(createSignalbox({ url }).POST('/auth/logout'))).rejects.toBeInstanceOf(ProblemError)
      expect(heard.length).toBe(1)
    })
  })

  it('resumes events after the last frame when the connection is lost', async () => {
    const frame = (id: string) => `event: inbox\nid: ${id}\ndata: {}\n\n`
    const stream = (text: string) => (_req: IncomingMessage, res: ServerResponse) =>
      void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(text)
    await withServer([stream(frame('7')), refuse(503, busy), stream(frame('8'))], async (url, heard) => {
      const cursors: (string | undefined)[] = []
      for await (const { cursor } of events(createSignalbox({ url, token: 't' }), { topics: ['inbox'] })) {
        cursors.push(cursor)
        if (cursors.length === 2) break
      }
      expect(cursors).toEqual(['7', '8'])
      expect(heard.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '7', '7'])
    })
    await withServer([stream(frame('7'))], async (url, heard) => {
      await events(createSignalbox({ url: `${url}/`, token: 't' }), { topics: ['inbox'] }).next()
      expect(heard.map(({ url }) => url)).toEqual(['/api/v1/events?topics=inbox'])
    })
    await withServer([refuse(401, { code: 'invalid_token' })], async (url) => {
      const renew = () => Promise.reject(new Error('the grant is gone'))
      const first = events(createSignalbox({ url, token: 't', renew }), { topics: ['inbox'] }).next()
      await expect(first).rejects.toThrow('the grant is gone')
    })
    await withServer([refuse(403, { code: 'permission_missing' })], async (url) => {
      const first = events(createSignalbox({ url, token: 't' }), { topics: ['inbox'] }).next()
      await expect(first).rejects.toBeInstanceOf(ProblemError)
    })
  })

  it('ends events that a refused token or an ended session can never continue', async () => {
    const stream = (text: string) => (_req: IncomingMessage, res: ServerResponse) =>
      void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(text)
    const refused = refuse(401, { code: 'invalid_token' })
    const follow = async (url: string) => {
      const seen: string[] = []
      try {
        for await (const { event } of events(createSignalbox({ url, token: 't' }), { topics: ['inbox'] }))
          seen.push(event)
      } catch (error) {
        return [...seen, (error as ProblemError).problem.status]
      }
      return seen
    }
    const inbox = stream('event: inbox\nid: 1\ndata: {}\n\n')
    await withServer(
      [refused, inbox, refused, refuse(500, { code: 'internal_error' }), refused],
      async (url, heard) => {
        expect(await follow(url)).toEqual(['inbox', 401])
        expect(heard.length).toBe(5)
      },
    )
    await withServer([stream('event: bye\ndata: {"reason":"revoked"}\n\n')], async (url, heard) => {
      expect(await follow(url)).toEqual(['bye', 401])
      expect(heard.length).toBe(1)
    })
  })

  it('asks for events again no sooner than a busy server says', async () => {
    const asked_at: number[] = []
    const fetch = async () => {
      asked_at.push(Date.now())
      return asked_at.length === 1
        ? Response.json({ code: 'overloaded', retryable: true }, { status: 503, headers: { 'retry-after': '20' } })
        : new Response('event: inbox\nid: 1\ndata: {}\n\n')
    }
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    try {
      const first = events(createSignalbox({ url: 'http://a', token: 't', fetch }), { topics: ['inbox'] }).next()
      await vi.advanceTimersByTimeAsync(60_000)
      expect((await first).value?.event).toBe('inbox')
      expect((asked_at[1] ?? 0) - (asked_at[0] ?? 0)).toBeGreaterThanOrEqual(20_000)
    } finally {
      vi.useRealTimers()
    }
  })

  it('asks for events again if there is no answer', async () => {
    const silent = () => undefined
    const inbox = (_req: IncomingMessage, res: ServerResponse) =>
      void res.writeHead(200, { 'content-type': 'text/event-stream' }).end('event: inbox\nid: 1\ndata: {}\n\n')
    await withServer([silent, inbox], async (url, heard) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      try {
        const first = events(createSignalbox({ url, token: 't' }), { topics: ['inbox'] }).next()
        while (heard.length < 1) await new Promise(setImmediate)
        await vi.advanceTimersByTimeAsync(30_000)
        while (heard.length < 2) {
          await vi.advanceTimersByTimeAsync(500)
          await new Promise(setImmediate)
        }
        expect((await first).value?.event).toBe('inbox')
      } finally {
        vi.useRealTimers()
      }
    })
  })
})
