import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDice, type Dice } from '../chaos/dice.ts'
import { until } from '../support/until.ts'
import { type Acts, type Case, killTool, startActs } from './support/acts.ts'

/**
 * Kills each tool's agent, the tool itself and the worker with kill -9: each of them in the middle of an act of each tool,
 * and at random moments. Effects are counted where they happen. KILLS_ROUNDS (1) sets the number of rounds, KILLS_SEED
 * repeats the same moments, KILLS_SANDBOX=1 runs the jobs in sandboxes.
 */
const rounds = Number(process.env.KILLS_ROUNDS ?? 1)
const seed = Number(process.env.KILLS_SEED ?? Date.now() % 1_000_000)
let acts: Acts
beforeAll(async () => {
  acts = await startActs({ sandboxed: process.env.KILLS_SANDBOX === '1' })
}, 300_000)
afterAll(() => acts?.stop(), 120_000)

/** Roughly how long an act of each tool takes here. */
const LONGEST_MS: Record<string, number> = { tofu: 3000, ansible: 4000, ssh: 1800, git: 900 }

const endOf = async (pool: string, path: string, name: string, why: string) => {
  const ENDS = ['succeeded', 'failed', 'outcome_unknown']
  const node = await until(
    async () => {
      const now = await acts.lab.nodeOf(path, name)
      return ENDS.includes(now.state) ? now : undefined
    },
    { timeout_ms: 120_000, what: `the end of ${name}, ${why}` },
  )
  const did = (acts.CASES[pool] as Case).count(name)
  const said = `${name}, ${why}, seed ${seed}: ${node.state} ${node.error_message ?? ''}`
  // Repeatable work is done in the end, once; for the rest nobody claims more than they know.
  if (pool === 'git') expect(node.state, said).toBe('succeeded')
  if (node.state === 'succeeded') expect(did, said).toBe(1)
  if (node.state === 'failed') expect(did, said).toBe(0)
  expect(did, said).toBeLessThanOrEqual(1)
  return { pool, name, did, state: node.state as string }
}

const strike = async (pool: string, victim: 'runner' | 'tool', name: string, dice: Dice) => {
  const { count, program } = acts.CASES[pool] as Case
  // At a moment of the whole act, or of the part after its effect, where a wrong claim does most harm.
  const late = pool !== 'git' && dice.between(0, 1) < 0.6
  const wait = dice.between(0, late ? 800 : (LONGEST_MS[pool] ?? 0))
  const path = await acts.startCase(pool, name)
  if (late) await until(() => count(name) > 0, { what: `the effect of ${name}` })
  await delay(wait)
  const agent = acts.agentOf(pool)
  if (victim === 'tool') killTool(agent, program())
  else {
    agent.child.kill('SIGKILL')
    await agent.ended
    acts.start(pool)
  }
  return endOf(
    pool,
    path,
    name,
    `its ${victim} killed ${Math.round(wait)} ms after ${late ? 'the effect' : 'the start'}`,
  )
}

/** Starts an act of each tool, held open, at the same time as the others; returns them once all are at work. */
const startHeld = async (what: string) => {
  const pools = Object.keys(acts.CASES)
  const names = pools.map((pool) => `${pool}-${what}`)
  const releases = names.map((name) => acts.hold(name))
  const paths = await Promise.all(pools.map((pool, i) => acts.startCase(pool, names[i] as string)))
  await Promise.all(names.map((name) => until(() => acts.isActing(name), { what: `${name} at work` })))
  return {
    held: pools.map((pool, i) => ({ pool, name: names[i] as string, path: paths[i] as string })),
    release: () => {
      for (const release of releases) release()
    },
  }
}

const killIn: Record<string, (pool: string) => Promise<unknown> | unknown> = {
  tool: (pool) => until(() => killTool(acts.agentOf(pool), (acts.CASES[pool] as Case).program()) > 0),
  runner: async (pool) => {
    const agent = acts.agentOf(pool)
    agent.child.kill('SIGKILL')
    await agent.ended
    acts.start(pool)
  },
}

it.each(Object.keys(killIn))(
  'the %s of each tool killed while it acts: what can be repeated is done once, and of the rest nobody knows the end',
  async (victim) => {
    const { held, release } = await startHeld(victim)
    await Promise.all(held.map(({ pool }) => killIn[victim]?.(pool)))
    release()
    for (const { pool, name, path } of held) {
      const end = await endOf(pool, path, name, `its ${victim} killed while it acts`)
      expect(end).toMatchObject({ did: 1, state: pool === 'git' ? 'succeeded' : 'outcome_unknown' })
    }
  },
  240_000,
)

it('a tool killed while it only prepares has had no effect: the attempt has failed for certain, and its repeat acts', async () => {
  const path = await acts.startCase('tofu', 'tofu-prepares', true)
  const { program } = acts.CASES.tofu as Case
  const words = 'tofu-prepares: opentofu.apply started'
  await until(() => acts.agentOf('tofu').said().includes(words), { every_ms: 10, timeout_ms: 120_000, what: words })
  await until(() => killTool(acts.agentOf('tofu'), program(), 'init') > 0, { every_ms: 5, what: 'its init' })
  await until(() => acts.agentOf('tofu').said().includes('tofu-prepares: failed'), { what: 'a certain failure' })
  expect(await endOf('tofu', path, 'tofu-prepares', 'its init killed')).toMatchObject({ state: 'succeeded', did: 1 })
  await acts.lab.approve(path, 'hold')
}, 240_000)

it(
  'a runner or tool killed at any moment never has an effect twice, and never claims a missing one',
  async () => {
    const found: Awaited<ReturnType<typeof endOf>>[] = []
    const dice = createDice(seed)
    for (let round = 0; round < rounds; round++) {
      // Two at a time: they share the machine with other tests.
      for (const pair of [
        ['tofu', 'ssh'],
        ['ansible', 'git'],
      ]) {
        const [first, second] = dice.between(0, 1) < 0.5 ? (['runner', 'tool'] as const) : (['tool', 'runner'] as const)
        const struck = pair.map((pool, i) => {
          const victim = i === 0 ? first : second
          return strike(pool, victim, `${pool}-${victim}-${round}`, dice)
        })
        found.push(...(await Promise.all(struck)))
      }
    }
    for (const { pool, name, did } of found) expect((acts.CASES[pool] as Case).count(name), name).toBe(did)
  },
  60_000 + rounds * 180_000,
)

it(
  'a worker killed while the tools act: each effect happens once, and the next worker gets the results',
  async () => {
    const dice = createDice(seed)
    for (let round = 0; round < rounds; round++) {
      const { held, release } = await startHeld(`worker-${round}`)
      await delay(dice.between(0, 1000))
      const replaced = acts.lab.replaceWorker()
      await delay(dice.between(0, 2000))
      release()
      await replaced
      for (const { pool, name, path } of held)
        expect(await endOf(pool, path, name, 'the worker killed')).toMatchObject({ state: 'succeeded', did: 1 })
    }
  },
  60_000 + rounds * 180_000,
)

it(
  'a link that breaks at any moment, for a moment or longer than an agent may be silent: no effect happens twice',
  async () => {
    const dice = createDice(seed)
    for (let round = 0; round < rounds; round++) {
      const started: [string, string, string][] = []
      for (const pool of Object.keys(acts.CASES)) {
        const name = `${pool}-link-${round}`
        started.push([pool, name, await acts.startCase(pool, name)])
      }
      await delay(dice.between(0, 1500))
      const away_ms = dice.pick([dice.between(200, 4000), dice.between(11_000, 18_000)])
      acts.lab.link.cut()
      await delay(away_ms)
      acts.lab.link.mend()
      for (const [pool, name, path] of started) {
        const end = await endOf(pool, path, name, `the link cut for ${Math.round(away_ms)} ms`)
        // No agent counts as lost so soon, so each brings its result.
        if (away_ms < 5000) expect(end).toMatchObject({ state: 'succeeded', did: 1 })
      }
    }
  },
  60_000 + rounds * 180_000,
)
