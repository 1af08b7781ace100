import { afterAll, beforeAll, expect, it } from 'vitest'
import { packFolder } from '../bench/operations/hosts.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { meetCrowd } from './crowd.ts'

/** The short form of `npm run test:overload`: people who list cannot keep out those who stop and decide. */
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ env_overrides: { OPERATIONS__PACKS__DIR: packFolder() } })
}, 180_000)
afterAll(() => stack?.stop(), 60_000)

it('400 list connections by one person: no stop and no decision is shed, and other readers are served', async () => {
  const { roles } = await meetCrowd(stack, { seconds: 12, connections: 400, operations: 3, gates: 30 })
  const role = (name: string) => {
    const found = roles.find((one) => one.name === name)
    if (!found) throw new Error(`nobody did this: ${name}`)
    return { ...found, count: Object.values(found.statuses).reduce((sum, one) => sum + one, 0) }
  }
  // Other tests share the cores, so a call may find a late part; none may lose its place to readers.
  for (const name of ['stop', 'resume', 'decide', 'look at a gate']) {
    const { codes, refused, count } = role(name)
    const shed = Object.entries(codes).filter(([code]) => code.endsWith('/overloaded'))
    expect([name, shed]).toEqual([name, []])
    expect(refused, `${name}: ${JSON.stringify(codes)}`).toBeLessThanOrEqual(Math.max(1, count * 0.1))
  }
  expect(role('decide').statuses['200']).toBeGreaterThan(10)
  expect(role('list by the crowd').refused).toBeGreaterThan(0)
  expect(role('list by others').refused).toBeLessThanOrEqual(role('list by others').count * 0.05)
}, 300_000)
