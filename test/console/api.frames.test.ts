import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { isAbout } from '../../apps/console/api/gather.ts'
import { calendarQuery } from '../../apps/console/queries/overview.ts'
import {
  contentsQuery,
  definitionsQuery,
  gapsQuery,
  needsQuery,
  placeGraphQuery,
  placesQuery,
  providersQuery,
} from '../../apps/console/queries/topology.ts'
import { followLog, frameFrom, type LogLine, placeOf } from '../../apps/shared/contracts/client/frames.ts'
import { answerOf, problemFrom, retryAfterMs } from '../../apps/shared/contracts/client/problem.ts'
import { isTrace } from '../../apps/shared/process/trace.ts'

describe('frames of the live stream', () => {
  it('patches the next change, ignores known ones, reads again after a gap', () => {
    const known = { fetched: 10, applied: 10 }
    expect(placeOf(known, 9)).toBe('ignore')
    expect(placeOf(known, 10)).toBe('ignore')
    expect(placeOf(known, 11)).toBe('patch')
    expect(placeOf(known, 12)).toBe('refetch')
  })

  it('patches every frame of one change, however many objects it changed', () => {
    expect(placeOf({ fetched: 10, applied: 11 }, 11)).toBe('patch')
    expect(placeOf({ fetched: 10, applied: 12 }, 11)).toBe('ignore')
  })

  it('skips unknown events and unreadable data', () => {
    expect(frameFrom('weather', '{}')).toBeUndefined()
    expect(frameFrom('node', '{"operation_id":')).toBeUndefined()
    expect(frameFrom('node', '"text"')).toBeUndefined()
    expect(frameFrom('resync', '{"topic":"inbox"}')).toEqual({ event: 'resync', data: { topic: 'inbox' } })
  })
})

describe('reads that news changes', () => {
  it('are those of every page that follows the resources, or they are read again by the clock', () => {
    const reads = [
      ...[placesQuery('regions', {}), placeGraphQuery(undefined), contentsQuery('dc')],
      ...[gapsQuery(), needsQuery('k'), definitionsQuery(), providersQuery('k')],
    ]
    for (const { queryKey } of reads) expect(isAbout('resources')(queryKey), String(queryKey[0])).toBe(true)
    expect(isAbout('operations')(gapsQuery().queryKey)).toBe(false)
    expect(calendarQuery().refetchInterval).toBeGreaterThan(0)
  })
})

describe('log frames', () => {
  const line = (seq: number): LogLine => ({ seq, time: '', stream: 'out', level: 'info', text: String(seq) })
  const frame = (to_seq: number, ...seqs: number[]) => ({
    operation_id: 'o',
    node_id: 'n',
    attempt: 1,
    to_seq,
    ...(seqs.length > 0 ? { from_seq: seqs[0] ?? 0, lines: seqs.map(line) } : {}),
  })

  it('appends new lines and drops repeats', () => {
    expect(followLog(3, frame(5, 2, 3, 4, 5))).toEqual({ lines: [line(4), line(5)], readAfter: null })
    expect(followLog(5, frame(5, 4, 5))).toEqual({ lines: [], readAfter: null })
  })

  it('fetches missing lines after a gap, without lines, and after a cut frame', () => {
    expect(followLog(3, frame(6, 5, 6))).toEqual({ lines: [], readAfter: 3 })
    expect(followLog(3, frame(900))).toEqual({ lines: [], readAfter: 3 })
    expect(followLog(3, frame(9, 4, 5))).toEqual({ lines: [line(4), line(5)], readAfter: 5 })
  })
})

describe('answers to commands', () => {
  it('never treats a missing answer or an outage as a refusal', () => {
    expect(answerOf(null)).toBe('unknown')
    expect(answerOf(500)).toBe('unknown')
    expect(answerOf(502)).toBe('unknown')
    expect(answerOf(503)).toBe('wait')
    expect(answerOf(429)).toBe('wait')
    expect(answerOf(409, { category: 'version_conflict', code: 'in_progress' })).toBe('wait')
  })

  it('tells accepted from applied, and treats every other refusal as final', () => {
    expect(answerOf(200)).toBe('applied')
    expect(answerOf(201)).toBe('applied')
    expect(answerOf(202)).toBe('accepted')
    expect(answerOf(409, { category: 'gate_not_waiting', code: 'already_decided' })).toBe('refused')
    expect(answerOf(412, { category: 'version_conflict', code: 'digest_moved' })).toBe('refused')
  })

  it('makes a problem of any answer', () => {
    expect(problemFrom(502, '<html>')).toMatchObject({ status: 502, category: 'internal_error', code: 'status_502' })
    expect(problemFrom(429, { code: 'rate_limited' }, '3')).toMatchObject({
      code: 'rate_limited',
      retry_after_ms: 3000,
    })
    expect(problemFrom(503, null, new Date(Date.now() + 60_000).toUTCString()).retry_after_ms).toBeGreaterThan(55_000)
    const foreign = { code: 5, message: 'Not Found', detail: {}, violations: 3 }
    expect(problemFrom(404, foreign)).toEqual({
      type: 'about:blank',
      title: 'Status 404',
      status: 404,
      detail: 'The server answered with status 404 and no explanation.',
      category: 'validation_error',
      code: 'status_404',
    })
  })
  it.each([
    ['120', 120_000],
    ['0', 0],
    ['Sun, 06 Nov 1994 08:50:37 GMT', 60_000],
    ['Sunday, 06-Nov-94 08:50:37 GMT', 60_000],
    ['Sun Nov  6 08:50:37 1994', 60_000],
    ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
    ['Sun, 05 Nov 2094 08:50:37 GMT', 3_600_000],
    ['999999999999', 3_600_000],
    ['-1', undefined],
    ['1994', 1_994_000],
    ['1994-11-06T08:50:37Z', undefined],
    ['Sunday', undefined],
    ['', undefined],
  ])('reads how long Retry-After "%s" waits', (header, ms) => {
    expect(retryAfterMs(header, Date.UTC(1994, 10, 6, 8, 49, 37))).toBe(ms)
  })
})

describe('a command that is sent again', () => {
  afterEach(() => void vi.unstubAllGlobals())

  /** Sends one command as often as the server has answers, each a list of statuses: returns the outcomes and keys. */
  const sentTo = async (...answers: number[]) => {
    const [keys, traces]: [string[], string[]] = [[], []]
    const server = createServer((request, answer) => {
      const { 'idempotency-key': key, traceparent } = request.headers
      keys.push(String(key))
      traces.push(isTrace(traceparent) ? (traceparent.split('-')[1] ?? '') : '')
      const status = answers.shift() ?? 503
      const code = { 409: 'in_progress', 403: 'reauth_required' }[status] ?? 'a_code'
      const category = status === 409 ? 'version_conflict' : 'a_category'
      answer.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
      answer.end(JSON.stringify({ category, code, retry_after_ms: 1 }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const Native = Request
    vi.stubGlobal('sessionStorage', { getItem: () => null })
    vi.stubGlobal(
      'Request',
      class extends Native {
        constructor(path: string, init?: RequestInit) {
          super(new URL(path, base), init)
        }
      },
    )
    const { commandSender } = await import('../../apps/console/api/commands.ts')
    const send = commandSender()
    const kinds: string[] = []
    while (answers.length > 0) kinds.push((await send({ path: '/v1/schedules', body: { title: 'a title' } })).kind)
    server.close()
    // Each try begins a trace; it goes into logs, as a key may not.
    expect([new Set(traces).size, traces.includes('')]).toEqual([keys.length, false])
    expect(traces.filter((trace) => keys.some((key) => trace === key.replaceAll('-', '')))).toEqual([])
    return { kinds, keys: new Set(keys).size }
  }
  const busy = [503, 429, 503, 503]

  it.each<[answers: number[], kinds: string[], keys: number]>([
    [[502, ...busy, 200], ['unknown', 'unknown', 'applied'], 1],
    [[502, 409, 409, 409, 409, 200], ['unknown', 'unknown', 'applied'], 1],
    [[502, 403, 202], ['unknown', 'unknown', 'accepted'], 1],
    [[409, 409, 409, 409, 503, 200], ['unknown', 'applied'], 1],
    [[...busy, 200], ['held', 'applied'], 1],
    [[403, 200], ['held', 'applied'], 1],
    [[502, 422, 200], ['unknown', 'refused', 'applied'], 2],
  ])('keeps its key until it is refused: %j', async (answers, kinds, keys) => {
    expect(await sentTo(...answers)).toEqual({ kinds, keys })
  })
})
