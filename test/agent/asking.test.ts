import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startWorker } from '../operations/support/worker.ts'
import { createReporter, type Work } from '../support/agent/agent.ts'
import { serverUrl } from '../support/database.ts'
import { type Link, startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { exitOf, type Lab, startLab } from './support/agent.ts'

/** Agents that ask for work over the API: answers that are lost, and work that finds no stream. */
let lab: Lab
/** Between the worker and NATS. */
let nats: Link
let file: Record<string, unknown>
beforeAll(async () => {
  nats = await startLink(serverUrl('NATS_URL'))
  lab = await startLab(['unheard', 'never', 'once', 'paused', 'frozen', 'away'], {
    bringWorker: (p: Parameters<typeof startWorker>[0], policy_file: string) =>
      startWorker(p, policy_file, { WORKER__NATS__URL: nats.url }),
  })
  const args = { type: 'array', items: { type: 'string' } }
  const effect = { path: lab.script('effect', `echo "$SIGNALBOX_KEY" >> ${lab.place('effects')}/"$2"`), args }
  file = { uid: 1500, programs: { effect } }
}, 90_000)
afterAll(async () => {
  await lab.stop()
  nats.stop()
})

/** The engine looks after its work this often, at first. */
const start = (pool: string, run_s: number, timeouts = {}) =>
  lab.start({
    ...{
      node_id: 'job',
      executor: 'external',
      pool,
      idempotent: false,
      timeouts: { run_s, heartbeat_s: 5, ...timeouts },
    },
    with: { job: 'command', inputs: { program: 'effect', args: [pool] } },
  })
/** Takes work as an agent does that never gets the answer. */
const take = async (pool: string): Promise<Work> => {
  const agent = { name: 'unheard', pools: [pool] }
  const given = await until(
    async () => {
      const { status, body } = await lab.p.as(lab.runner).post(`/v1/pools/${pool}/work`, { wait_s: 8, agent })
      return status === 200 && body
    },
    { what: 'work' },
  )
  return given as Work
}
/** The work was given out this much earlier. */
const age = (path: string, seconds: number) =>
  lab.p.query(
    `update operations.executions set heartbeat_at = heartbeat_at - make_interval(secs => $2)
     where operation_id = $1 and closed_at is null`,
    [path.split('/').at(-1), seconds],
  )

it('work whose answer was lost goes to the next agent, though its step may not be repeated', async () => {
  const path = await start('unheard', 15)
  const lost = await take('unheard')
  await age(path, 31)
  const agent = lab.startAgent({ ...file, pools: ['unheard'] })
  const { attempts } = await lab.reaches(path, 'succeeded')
  expect(attempts).toHaveLength(1)
  expect(lab.linesOf('effects/unheard')).toEqual([lost.key])
  expect(await createReporter(lost)('started')).toMatchObject({ status: 409, code: 'stale_fence' })
  agent.child.kill('SIGTERM')
  expect(await exitOf(agent)).toBe(0)
}, 90_000)

it('work that no agent began goes to no other one while its operation is paused', async () => {
  const path = await start('paused', 15)
  const lost = await take('paused')
  const olga = lab.p.as('olga')
  expect((await olga.post(`${path}/pause`, { reason: 'wait' })).status).toBeLessThan(300)
  await age(path, 31)
  await until(async () => (await lab.nodeOf(path)).state === 'ready', { what: 'the work is back' })
  expect(await createReporter(lost)('started')).toMatchObject({ status: 409 })
  expect((await olga.post(`${path}/resume`, { reason: 'wait' })).status).toBeLessThan(300)
  const agent = lab.startAgent({ ...file, pools: ['paused'] })
  const { attempts } = await lab.reaches(path, 'succeeded')
  expect(attempts).toHaveLength(1)
  expect(lab.linesOf('effects/paused')).toEqual([lost.key])
  agent.child.kill('SIGTERM')
}, 120_000)

it('work that five agents took and none began has no effect, and says so', async () => {
  const path = await start('never', 3)
  const fences = new Set<number>()
  const ends: number[] = []
  for (let handover = 1; handover <= 5; handover += 1) {
    const { fence, start_before } = await take('never')
    fences.add(fence)
    ends.push(Date.parse(start_before))
    await age(path, 31)
  }
  expect(fences.size).toBe(5)
  // All have the time of the first one to begin.
  expect(Math.max(...ends) - Math.min(...ends)).toBeLessThan(1000)
  expect(await lab.reaches(path, 'failed')).toMatchObject({
    error_class: 'not_picked_up',
    error_message: 'No agent of the pool "never" began it in time, so it has no effect.',
  })
}, 240_000)

it('work that was taken and not begun by the end of its time is not handed over again', async () => {
  const path = await start('once', 15, { start_s: 12 })
  await take('once')
  expect(await lab.reaches(path, 'failed')).toMatchObject({
    error_class: 'not_picked_up',
    error_message: 'No agent of the pool "once" began it in time, so it has no effect.',
  })
  const handed = 'select from operations.executions where operation_id = $1'
  expect(await lab.p.query(handed, [path.split('/').at(-1)])).toHaveLength(1)
}, 120_000)

const handovers = (path: string) =>
  lab.p.query<{ closed: boolean; unsent: number | null }>(
    `select e.closed_at is not null as closed, (a.resume ->> 'unsent')::int as unsent from operations.executions e
     join operations.node_attempts a using (operation_id, node_id, role, attempt) where operation_id = $1 order by e.fence`,
    [path.split('/').at(-1)],
  )
const isDoneOnce = async (path: string, pool: string) => {
  const agent = lab.startAgent({ ...file, pools: [pool] })
  const { attempts } = await lab.reaches(path, 'succeeded')
  expect(attempts).toHaveLength(1)
  expect(lab.linesOf(`effects/${pool}`)).toHaveLength(1)
  agent.child.kill('SIGTERM')
  expect(await exitOf(agent)).toBe(0)
}

it('work that finds no stream for a moment is offered again, and done once', async () => {
  nats.freeze()
  const path = await start('frozen', 15)
  await until(async () => (await handovers(path)).length > 0, { what: 'the handover' })
  await delay(7000)
  nats.thaw()
  await isDoneOnce(path, 'frozen')
}, 120_000)

it('work waits for a stream that is away for longer as for an agent, and those handovers do not count', async () => {
  nats.cut()
  const path = await start('away', 15)
  const closed = async () => (await handovers(path)).filter((one) => one.closed)
  await until(async () => (await closed()).length > 1, { timeout_ms: 150_000, what: 'two slices without a stream' })
  const why = async () => {
    const { state, error_class, attempts } = await lab.nodeOf(path)
    expect([state, error_class, attempts.length]).toEqual(['running', null, 1])
    return /^The work is offered again until .+: .+/.test(attempts[0].progress.message)
  }
  await until(why, { what: 'why it is not offered' })
  nats.mend()
  const given = async () => {
    const all = await handovers(path)
    const last = all.at(-1)
    return last && !last.closed && last.unsent === all.length - 1
  }
  await until(given, { what: 'a handover that the stream accepted' })
  await isDoneOnce(path, 'away')
}, 300_000)
