import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { run } from '../../apps/cli/run.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { initPack } from '../../apps/platform/packs/main.ts'
import { scratchFolder } from '../support/servers.ts'
import { locateTofu } from '../support/tofu.ts'

/** `signalbox pack test --run`: the real tool carries out a new pack's plan here, without a server. */
const folder = scratchFolder()
const dir = join(folder, 'web')
const agentFile = (name: string, sources: object, program: string) => {
  const path = join(folder, `${name}.json`)
  const file = { format: 'signalbox/agent@1', pools: ['infra'], uid: 0, state_dir: join(folder, 'state') }
  writeFileSync(path, JSON.stringify({ ...file, tofu: { program, sources } }))
  return path
}
let program: string
beforeAll(async () => {
  program = await locateTofu(createScreen())
  initPack(dir, 'opentofu')
  mkdirSync(join(folder, 'tfstate'))
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const pack = (...args: string[]) => packOf(dir, ...args)
const packOf = async (place: string, ...args: string[]) => {
  let out = ''
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text
    return true
  })
  const code = await run(['pack', 'test', place, ...args]).finally(() => spy.mockRestore())
  return { code, out }
}

it('names a node whose value a skipped step lacks, and goes on past one that may fail', async () => {
  const own = join(folder, 'skips')
  initPack(own, 'opentofu')
  const path = join(own, 'pack.yaml')
  const steps = `    steps:
      - { id: gone, executor: noop, when: 'false', with: { outputs: { x: 1 } }, outputs: { x: /x } }
      - { id: bad, needs: [gone], executor: noop, on_failure: tolerate, with: { outputs: { x: { $from: nodes/gone/outputs/x } } } }
      - { id: last, needs: [bad], executor: noop }
`
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^ {4}gates:[\s\S]*/m, steps))
  const tests = join(own, 'tests/first.yaml')
  const nodes = 'expect: { nodes: [gone.skips-eu1, bad.skips-eu1, last.skips-eu1] }'
  writeFileSync(tests, readFileSync(tests, 'utf8').replace(/expect:\n[\s\S]*/, `${nodes}\n`))
  const { code, out } = await packOf(own, '--run', '--agent', agentFile('skips', {}, program))
  expect(out).toMatch(/failed +bad\.skips-eu1: expression_error: [\s\S]*succeeded +last\.skips-eu1/)
  expect(code).toBe(5)
}, 120_000)

it('plans and applies the module of a new pack, and names the node that fails', async () => {
  const state = join(folder, 'tfstate')
  const good = agentFile('good', { web: { path: join(dir, 'source'), state } }, program)
  expect(await pack('--agent', good)).toMatchObject({ code: 0 })
  expect(existsSync(join(state, 'eu1.tfstate'))).toBe(false)
  const { code, out } = await pack('--run', '--agent', good)
  expect(out).toMatch(/succeeded +plan\.web-eu1[\s\S]*succeeded +apply\.web-eu1/)
  expect(code).toBe(0)
  expect(JSON.parse(readFileSync(join(state, 'eu1.tfstate'), 'utf8')).serial).toBeGreaterThan(0)

  const bad = agentFile('bad', { other: { path: join(dir, 'source') } }, program)
  const refused = await pack('--run', '--agent', bad)
  expect(refused.code).toBe(5)
  expect(refused.out).toMatch(/failed +plan\.web-eu1: agent_refused: .*"web"/)
  expect(refused.out).not.toContain('apply.web-eu1')

  // The author has no other log than this one.
  const none = agentFile('none', { web: { path: join(dir, 'source'), state } }, '/opt/none/tofu')
  expect((await pack('--run', '--agent', none)).out).toMatch(
    /failed +plan\.web-eu1: [\s\S]*\/opt\/none\/tofu.*not found/,
  )
}, 120_000)
