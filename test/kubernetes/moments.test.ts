import { readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { descendants } from '../agent/support/acts.ts'
import { createDice } from '../chaos/dice.ts'
import { spawnWorker } from '../operations/support/worker.ts'
import { until } from '../support/until.ts'
import { type Any, configMap, type KubeLab, startKubeLab } from './support/lab.ts'

/**
 * kill -9 of the runner, of kubectl and of the worker, and forced cancels, at random moments of an apply. Objects are
 * counted in the cluster. MOMENTS_ROUNDS (1) sets the number of rounds, MOMENTS_SEED repeats the same moments.
 */
const rounds = Number(process.env.MOMENTS_ROUNDS ?? 1)
const seed = Number(process.env.MOMENTS_SEED ?? Date.now() % 1_000_000)
const SIZE = 150
let k: KubeLab
beforeAll(async () => {
  k = await startKubeLab({ bringWorker: spawnWorker })
  await k.kube.namespace('web')
}, 300_000)
afterAll(() => k?.stop())

const kubectls = () =>
  descendants(k.agent().child.pid as number).filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/exe`).endsWith('kubectl')
    } catch {
      return false
    }
  })
const made = async (name: string): Promise<Any[]> => {
  const { items } = await k.kube.get('/api/v1/namespaces/web/configmaps?limit=2000')
  return items.filter(({ metadata }: Any) => metadata.name.startsWith(`${name}-`))
}
const listed = async (name: string): Promise<Any[]> => {
  const list = await k.kube.get(`/api/v1/namespaces/web/configmaps/signalbox-set-web-${name}`)
  return list ? JSON.parse(list.data.objects) : []
}

const begin = async (name: string, wait_ms: number): Promise<string> => {
  k.write(
    `web/${name}/all.yaml`,
    Array.from({ length: SIZE }, (_, n) => configMap(`${name}-${n}`, { a: '1' })),
  )
  const more = { retry: { max_attempts: 4, initial_s: 1 }, timeouts: { run_s: 120, start_s: 60, heartbeat_s: 5 } }
  const path = await k.lab.startGraph(k.change(`web/${name}`, { more }))
  const before = k.agent().said().length
  await k.lab.approve(path)
  const begun = () => k.agent().said().slice(before).includes('apply: kubernetes.apply begun')
  await until(begun, { timeout_ms: 60_000, what: `${name} begun` })
  await delay(wait_ms)
  return path
}
const ends = (path: string, why: string) =>
  until(
    async () => {
      const node = await k.lab.nodeOf(path, 'apply')
      return ['succeeded', 'failed', 'outcome_unknown', 'cancelled'].includes(node.state) ? node : undefined
    },
    { timeout_ms: 120_000, what: `the end, ${why}` },
  )

const STRIKES = {
  runner: () => k.restart(),
  tool: async () => kubectls().forEach((pid) => void process.kill(pid, 'SIGKILL')),
  worker: () => k.lab.replaceWorker(),
}
it(
  'a runner, a tool or a worker that is killed at any moment: the repeat ends as one apply would',
  async () => {
    const dice = createDice(seed)
    for (let round = 0; round < rounds; round++)
      for (const [victim, strike] of Object.entries(STRIKES)) {
        const name = `${victim}${round}`
        const wait = dice.between(0, 2500)
        const path = await begin(name, wait)
        await strike()
        const why = `${victim} killed after ${Math.round(wait)} ms, seed ${seed}`
        const node = await ends(path, why)
        expect(node.state, `${why}: ${node.error_class} ${node.error_message}`).toBe('succeeded')
        const uids = (await made(name)).map(({ metadata }) => metadata.uid)
        expect(uids, why).toHaveLength(SIZE)
        expect((await listed(name)).map(({ uid }) => uid).toSorted(), why).toEqual(uids.toSorted())
      }
  },
  60_000 + rounds * 300_000,
)

it(
  'a cancel at any moment: the number of objects that it says is the number in the cluster, and no write follows',
  async () => {
    const dice = createDice(seed)
    for (let round = 0; round < 3 * rounds; round++) {
      const name = `cancel${round}`
      const wait = dice.between(0, 2500)
      const path = await begin(name, wait)
      await k.lab.force(path)
      const why = `cancelled after ${Math.round(wait)} ms, seed ${seed}`
      const node = await ends(path, why)
      const said = `${why}: ${node.state} ${node.error_class ?? ''} ${node.error_message ?? ''}`
      const found = (await made(name)).length
      await delay(2000)
      expect((await made(name)).length, said).toBe(found)
      const [, done] = /(\d+) of \d+ objects are done/.exec(node.error_message ?? '') ?? []
      if (node.state === 'succeeded') expect(found, said).toBe(SIZE)
      else if (done !== undefined) expect(found, said).toBe(Number(done))
      else if (node.state !== 'outcome_unknown') expect(found, said).toBe(0)
      // Whatever was made is on the list of the set, so a later apply finds and prunes it.
      if (found > 0) expect((await listed(name)).length, said).toBe(SIZE)
    }
    await until(() => kubectls().length === 0, { timeout_ms: 20_000, what: 'kubectl gone' })
    const folders = () => readdirSync(k.lab.place('tmp')).filter((one) => one.startsWith('signalbox-agent-'))
    // The folders of killed runners are removed once they are old.
    await until(() => folders().length <= rounds, { timeout_ms: 20_000, what: 'folders of living runners gone' })
  },
  60_000 + rounds * 300_000,
)
