import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'
import { listenTo, type StreamFrame } from './support/stream.ts'

/** The live stream across breaks: no event missed, none doubled, and an explicit notice if that cannot be promised. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ instances: 2 })
})
afterAll(() => p.stop())

const command = (operation_id: string, verb: 'pause' | 'resume', instance = 0) =>
  p
    .as('olga')
    .post(`/v1/operations/${operation_id}/${verb}`, { reason: 'x' }, { instance })
    .then((reply) => must(reply, 200, 202))
const changeSeq = async (operation_id: string) =>
  (await p.as('vic').get(`/v1/operations/${operation_id}`)).body.change_seq as number

const attempt = async (operation_id: string, node_id: string) =>
  p.query(
    `insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key) values ($1, $2, 1, 1, 5, 'running', 'noop', 'k')`,
    [operation_id, node_id],
  )
/** Lines of a log, as a worker writes them. */
const write = async (operation_id: string, node_id: string, chunk: number, first_seq: number, count: number) => {
  const lines = Array.from({ length: count }, (_, n) => ({
    seq: first_seq + n,
    time: 't',
    stream: 'stdout',
    level: 'info',
    text: `line ${first_seq + n}`,
  }))
  await p.query(
    `with body as (insert into operations.log_chunks (operation_id, node_id, attempt, chunk, lines) values ($1, $2, 1, $3, $4))
     insert into operations.operation_job_log_index (operation_id, node_id, attempt, chunk, generation, first_seq, last_seq, first_at, last_at, lines, bytes)
     values ($1, $2, 1, $3, 1, $5, $6, now(), now(), $7, 100)`,
    [operation_id, node_id, chunk, JSON.stringify(lines), first_seq, first_seq + count - 1, count],
  )
}
const linesOf = (frames: StreamFrame[]) =>
  frames.filter(({ event }) => event === 'log').flatMap(({ data }) => data.lines.map(({ seq }: { seq: number }) => seq))

describe('a resumed stream', () => {
  it('has every change and every line once, even if its process has ended meanwhile', async () => {
    const { operation_id } = await p.startOperation(gated())
    await attempt(operation_id, 'before')
    const topics = `operation:${operation_id},operations,inbox,log:${operation_id}/before/1`
    const first = await listenTo(p, p.people.vic, topics, { instance: 1 })
    await command(operation_id, 'pause')
    await write(operation_id, 'before', 0, 1, 3)
    await first.next('operation', ({ data }) => data.status === 'pausing')
    await first.next('log')
    await p.running[1]?.stop()
    p.running.splice(1)
    await until(() => first.isEnded())
    expect(first.frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'shutdown' } })
    const last_event_id = first.lastId() as string
    await command(operation_id, 'resume')
    await write(operation_id, 'before', 1, 4, 2)
    await command(operation_id, 'pause')

    const second = await listenTo(p, p.people.vic, topics, { last_event_id })
    const change_seq = await changeSeq(operation_id)
    await second.next('operation', ({ data }) => data.change_seq === change_seq)
    await second.next('log', ({ data }) => data.to_seq === 5)
    const frames = [...first.frames, ...second.frames]
    const seqs = frames.filter(({ event }) => event === 'operation').map(({ data }) => data.change_seq as number)
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, n) => (seqs[0] as number) + n))
    expect(linesOf(frames)).toEqual([1, 2, 3, 4, 5])
    expect(frames.some(({ event }) => event === 'resync')).toBe(false)
    await second.stop()
  })

  it('misses no change however often it comes back while others follow', async () => {
    const { operation_id } = await p.startOperation(gated())
    const topic = `operation:${operation_id}`
    const follower = await listenTo(p, p.people.vic, topic)
    await command(operation_id, 'pause')
    await follower.next('operation', ({ data }) => data.status === 'pausing')
    const from = follower.lastId() as string
    const first = follower.frames.filter(({ event }) => event === 'operation').at(-1)?.data.change_seq as number
    let busy = true
    const changes = (async () => {
      for (let turn = 0; busy; turn += 1) await command(operation_id, turn % 2 === 0 ? 'resume' : 'pause')
    })()
    for (let round = 0; round < 40; round += 1) {
      const back = await listenTo(p, p.people.vic, topic, { last_event_id: from })
      const until_seq = await changeSeq(operation_id)
      await back.next('operation', ({ data }) => data.change_seq >= until_seq)
      const seqs = back.frames.filter(({ event }) => event === 'operation').map(({ data }) => data.change_seq as number)
      expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, n) => first + 1 + n))
      await back.stop()
    }
    busy = false
    await changes
    await follower.stop()
  }, 60_000)

  it('is told to refetch if missed events are past retention, and continues from there', async () => {
    const { operation_id } = await p.startOperation(gated())
    const topics = `operation:${operation_id},inbox`
    const first = await listenTo(p, p.people.vic, topics)
    await command(operation_id, 'pause')
    await first.next('operation', ({ data }) => data.status === 'pausing')
    await first.stop()
    await command(operation_id, 'resume')
    await command(operation_id, 'pause')
    const pub_seq = 'select max(pub_seq) from operations.outbox'
    await until(async () => (await p.query(`${pub_seq} having bool_and(pub_seq is not null)`)).length > 0)
    await p.query(`delete from operations.outbox where pub_seq < (${pub_seq})`)

    const second = await listenTo(p, p.people.vic, topics, { last_event_id: first.lastId() as string })
    await second.next('resync', ({ data }) => data.topic === 'inbox')
    expect(second.frames.filter(({ event }) => event === 'resync').map(({ data }) => data.topic)).toEqual(
      topics.split(','),
    )
    await command(operation_id, 'resume')
    await second.next('operation', ({ data }) => data.status !== 'pausing')
    // It now has a position with which it can resume.
    const third = await listenTo(p, p.people.vic, topics, { last_event_id: second.lastId() as string })
    await second.stop()
    const change_seq = await changeSeq(operation_id)
    await command(operation_id, 'pause')
    await third.next('operation', ({ data }) => data.change_seq > change_seq)
    expect(third.frames.some(({ event }) => event === 'resync')).toBe(false)
    await third.stop()
  })

  it('is told to refetch if a database restore took back what it has seen', async () => {
    const { operation_id } = await p.startOperation(gated())
    const first = await listenTo(p, p.people.vic, 'inbox,operations')
    await command(operation_id, 'pause')
    await first.next('operation', ({ data }) => data.operation_id === operation_id)
    const last_event_id = first.lastId() as string
    await first.stop()
    await attempt(operation_id, 'before')
    await write(operation_id, 'before', 0, 1, 100)
    const log = `log:${operation_id}/before/1`
    const open = await listenTo(p, p.people.vic, `inbox,operations,${log}`)
    await open.next('log', ({ data }) => data.to_seq === 100)
    const beyond = open.lastId() as string
    // The restored log has fewer lines.
    await p.query(`delete from operations.operation_job_log_index where operation_id = $1`, [operation_id])
    await p.query(`delete from operations.log_chunks where operation_id = $1`, [operation_id])
    await write(operation_id, 'before', 1, 1, 2)
    await p.query(
      `insert into operations.relay_state (name, epoch, next, js_last_seq) select 'restored', 1, 1, max(pub_seq) from operations.outbox`,
    )
    await until(async () => (await p.running[0]?.deps.fence())?.lost)
    const second = await listenTo(p, p.people.vic, 'inbox,operations', { last_event_id })
    await second.next('resync', ({ data }) => data.topic === 'inbox')
    await second.stop()
    // So is whoever was following all the time, once for each topic.
    await open.next('resync', ({ data }) => data.topic === 'operations')
    expect(open.frames.filter(({ event }) => event === 'resync')).toHaveLength(3)
    // Their logs continue behind the lines that are left.
    await write(operation_id, 'before', 2, 3, 1)
    await open.next('log', ({ data }) => data.to_seq === 3)
    const back = await listenTo(p, p.people.vic, `operations,${log}`, { last_event_id: beyond })
    await back.next('log', ({ data }) => data.to_seq === 3)
    await Promise.all([open.stop(), back.stop()])
    await p.query(`delete from operations.relay_state where name = 'restored'`)
    await until(async () => (await p.running[0]?.deps.fence())?.lost === null)
  })

  it('encodes its place in fifty logs in an id that fits a header, and in no log that it has left', async () => {
    const ids = Array.from({ length: 120 }, (_, n) => `${'n'.repeat(90)}${100 + n}`)
    const nodes = ids.map((node_id) => ({ node_id, executor: 'noop', with: {} }))
    const { operation_id } = await p.startOperation({ nodes })
    const topicOf = (node_id: string) => `log:${operation_id}/${node_id}/1`
    for (const node_id of ids) {
      await attempt(operation_id, node_id)
      await write(operation_id, node_id, 0, 1, 2)
    }
    let last_event_id = ''
    for (const at of [0, 50, 70]) {
      const followed = ids.slice(at, at + 50)
      const topics = followed.map(topicOf).join()
      const stream = await listenTo(p, p.people.vic, topics, { ...(last_event_id && { last_event_id }) })
      expect(stream.response.status).toBe(200)
      // Topics with which it resumed are not reported again.
      const fresh = followed.filter((_, n) => at !== 70 || n >= 30)
      for (const node_id of fresh) await stream.next('log', ({ data }) => data.node_id === node_id)
      expect(stream.frames.filter(({ event }) => event === 'log')).toHaveLength(fresh.length)
      last_event_id = stream.lastId() as string
      expect(last_event_id.length).toBeLessThan(2500)
      await stream.stop()
    }
  })

  it('treats an invalid id as none: it starts at the present, and says so', async () => {
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const far = { p: Number.MAX_SAFE_INTEGER, c: 0, l: {} }
    for (const last_event_id of ['x', encode(null), encode({ p: -1, c: 0 }), encode({ p: 1.5, c: 0 }), encode(far)]) {
      const stream = await listenTo(p, p.people.vic, `me,resource:${randomUUID()}`, { last_event_id })
      await stream.next('resync', ({ data }) => data.topic === 'me')
      expect(stream.frames.filter(({ event }) => event === 'resync')).toHaveLength(1)
      await stream.stop()
    }
  })

  it('reloads resources if their place is ahead, as after a restore, or far behind; without that topic it does not', async () => {
    const first = await listenTo(p, p.people.vic, 'me')
    const now = JSON.parse(Buffer.from(first.frames[0]?.data.cursor, 'base64url').toString())
    await first.stop()
    await p.query(
      `insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, annotations, desired_state, observed_state, change_seq)
       values ('far', 'fleet.host', 1, 'far', 1, 'active', '{}', '{}', '{}', '{}', setval('operations.catalog_change_seq', $1))`,
      [now.c + 5000],
    )
    for (const c of [now.c, Number.MAX_SAFE_INTEGER]) {
      const last_event_id = Buffer.from(JSON.stringify({ ...now, c })).toString('base64url')
      const [resources, me] = [
        await listenTo(p, p.people.vic, 'resources', { last_event_id }),
        await listenTo(p, p.people.vic, 'me', { last_event_id }),
      ]
      await resources.next('resync', ({ data }) => data.topic === 'resources')
      expect(me.frames.filter(({ event }) => event === 'resync')).toEqual([])
      await Promise.all([resources.stop(), me.stop()])
    }
  })
})
