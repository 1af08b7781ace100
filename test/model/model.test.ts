import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Stack, startStack } from '../support/stack.ts'
import { run } from './run.ts'

/** The short form of `npm run test:model`: fewer steps, always the same dice. */
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ own_servers: ['nats'] })
}, 180_000)
afterAll(() => stack?.stop(), 60_000)

it('a random crowd: only approved nodes run, none after a stop, and every chain proves it', async () => {
  const said: string[] = []
  const outcome = await run(stack, {
    seed: 11,
    steps: 400,
    operations: 12,
    hands: 10,
    open: 12,
    kill_every_s: 15,
    victims: ['nats', 'worker', 'operations'],
    print: (line) => said.push(line),
  })
  expect(outcome.breaches, said.join('\n')).toEqual([])
  expect(outcome.chains).toBe(outcome.operations)
  // The judge had work: starts behind gates, effects on hosts, and chains that were changed.
  for (const judged of [outcome.starts, outcome.effects, outcome.forged]) expect(judged).toBeGreaterThan(10)
}, 600_000)
