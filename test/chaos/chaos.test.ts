import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Stack, startStack } from '../support/stack.ts'
import { atRandom } from './kills.ts'
import { wreak } from './run.ts'

/** The short form of `npm run test:chaos`: its own platform and servers, always the same kills. */
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ own_servers: ['postgres', 'redis', 'nats', 'temporal'], linked: true })
}, 180_000)
afterAll(() => stack.stop(), 60_000)

it('six kills at any moment: each effect happens once, none is lost, every operation ends correctly, and nothing is left behind', async () => {
  const said: string[] = []
  const harm = atRandom(stack, { kills: 6, gap_s: 3 })
  const outcome = await wreak(stack, { harm, seed: 11, at_once: 2, print: (line) => said.push(line) })
  expect([outcome.breaches, said.filter((line) => line.includes('BREACH'))]).toEqual([[], []])
  expect(outcome).toMatchObject({ twice: 0, lost: 0 })
  expect([...outcome.deaths.values()].flat()).toHaveLength(6)
  expect(outcome.sign_ins.count).toBeGreaterThan(1)
  expect(outcome.jobs.length).toBeGreaterThan(1)
  expect(outcome.effects).toBeGreaterThan(0)
}, 600_000)
