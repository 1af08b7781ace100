import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { operation_control } from '../../db/operations/tables/index.ts'
import { until } from '../support/until.ts'
import { createEngine, type Engine, gate, node, WORKFLOWS } from './support/engine.ts'

/** Builds of the workflows that are wrong in one place, next to the correct one. */
let engine: Engine
const folders: string[] = []
const build = (file: string, right: string, wrong: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-build-'))
  folders.push(folder)
  cpSync(join(ROOT, 'workflows'), join(folder, 'workflows'), { recursive: true })
  for (const name of ['apps', 'activities', 'node_modules']) symlinkSync(join(ROOT, name), join(folder, name))
  const path = join(folder, 'workflows/operation', file)
  const text = readFileSync(path, 'utf8')
  expect(text).toContain(right)
  writeFileSync(path, text.replace(right, wrong))
  return join(folder, 'workflows/index.ts')
}

beforeAll(async () => {
  engine = await createEngine()
}, 60_000)
afterAll(async () => {
  await engine.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

const resume = (operation_id: string) =>
  engine.command(operation_id, 'resume', { acknowledged: [] }, (tx) =>
    tx.update(operation_control).set({ control: 'run', pause_reason: null }).where(sql`operation_id = ${operation_id}`),
  )
const graph = () => ({
  nodes: [node('a'), node('b', { depends_on: ['a'] }), node('c', { depends_on: ['b'] })],
  gates: [gate('go', ['c'])],
})
/** The rows report it, and what to do; nothing starts. */
const pausedByMismatch = async (operation_id: string, why: string) => {
  await until(async () => (await engine.read.operation(operation_id)).status === 'paused', {
    timeout_ms: 30_000,
    what: 'paused by the rows',
  })
  const operation = await engine.read.operation(operation_id)
  expect(operation.pause_reason).toBe('engine_mismatch')
  expect(operation.blocked_on).toMatchObject([{ kind: 'engine', message: expect.stringContaining(why) }])
  expect(operation.blocked_on[0].message).toContain('then resume')
  const paused = (await engine.read.timeline(operation_id)).filter(({ type }) => type === 'operation.pausing')
  expect(paused).toMatchObject([{ reason: expect.stringContaining(why), data: { pause_reason: 'engine_mismatch' } }])
}

it('a reducer that throws pauses its operation in the rows; with the right build and a resume it continues', async () => {
  const wrong = build(
    'state/gates.ts',
    'export const setGate = (',
    "export const setGate = (..._: unknown[]) => { throw new Error('gates cannot be set') }\nexport const right = (",
  )
  await engine.deploy(wrong)
  const operation_id = await engine.start(graph())
  await until(async () => (await engine.read.operation(operation_id)).status === 'paused', { timeout_ms: 30_000 })
  await pausedByMismatch(operation_id, 'gates cannot be set')
  const begun = (await engine.read.attempts(operation_id)).length
  expect(await engine.sendPending(operation_id)).toEqual(['pause'])

  await engine.deploy(WORKFLOWS)
  // The engine takes the commands that had waited, including the pause, and only a person can resume it.
  const taken = async () =>
    (
      await engine.pool.query(
        `select status from operations.operation_commands where operation_id = $1 and kind = 'pause'`,
        [operation_id],
      )
    ).rows[0].status
  await until(async () => (await taken()) === 'applied', { what: 'the pause taken' })
  expect((await engine.read.operation(operation_id)).pause_reason).toBe('engine_mismatch')
  expect((await engine.read.attempts(operation_id)).length).toBe(begun)
  await resume(operation_id)
  await until(async () => (await engine.read.gate(operation_id, 'go')).status === 'waiting', { timeout_ms: 60_000 })
  const go = { gate_id: 'go', round: 1, status: 'approved', digest: '' } as const
  await engine.command(operation_id, 'gate_decided', go, (tx) =>
    tx.execute(
      sql`update operations.gates set status = 'approved', approved_digest = digest where operation_id = ${operation_id}`,
    ),
  )
  expect(await engine.ends(operation_id)).toMatchObject({ status: 'succeeded' })
  expect((await engine.read.attempts(operation_id)).map(({ node_id, attempt }) => [node_id, attempt])).toEqual([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ])
}, 180_000)

it('a broken invariant is caught before any part of the step is carried out', async () => {
  // A build that forgets the pause when it dispatches.
  const wrong = build('state/schedule.ts', "  s.control === 'run' &&\n  s.wanted === null &&", '  s.wanted === null &&')
  await engine.deploy(wrong)
  const slow = [node('a', { with: { delay_ms: 1500 } }), node('b', { depends_on: ['a'] })]
  const operation_id = await engine.start({ nodes: slow })
  await until(async () => (await engine.read.attempts(operation_id)).length === 1, { timeout_ms: 30_000 })
  await engine.command(operation_id, 'pause', {}, (tx) =>
    tx
      .update(operation_control)
      .set({ control: 'pause', pause_reason: 'operator' })
      .where(sql`operation_id = ${operation_id}`),
  )
  await pausedByMismatch(operation_id, 'b starts while pause is wanted')
  expect((await engine.read.attempts(operation_id)).map(({ node_id }) => node_id)).toEqual(['a'])
  await engine.deploy(WORKFLOWS)
  await resume(operation_id)
  expect(await engine.ends(operation_id)).toMatchObject({ status: 'succeeded' })
}, 180_000)
