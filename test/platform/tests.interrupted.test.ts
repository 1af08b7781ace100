import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { processesWith } from '../support/pids.ts'
import { until } from '../support/until.ts'
import { type Running, runVerb } from './support/verb.ts'

/** A run of `npm test` that does not finish. */
const home = mkdtempSync(join(tmpdir(), 'signalbox-runs-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

const runs = () => readdirSync(home).filter((name) => name.startsWith('signalbox-test-'))
const processesOf = (run: string) => processesWith('TMPDIR', join(home, run, 'tmp'))

/** Starts a run and waits until its servers are up and its tests are running. */
const begin = async (): Promise<{ run: string; running: Running }> => {
  const running = runVerb('test', ['test/platform/process.test.ts'], { env: { TMPDIR: home } })
  await running.says(/servers +ready after/, 120_000)
  const [run = ''] = runs()
  await until(() => processesOf(run).length > 4, { what: 'servers and tests' })
  return { run, running }
}

it('ends all that it has started if it is interrupted, and removes its folder', async () => {
  const { run, running } = await begin()
  running.signal('SIGTERM')
  expect(await running.ended).toBe(1)
  expect(processesOf(run)).toEqual([])
  expect(runs()).toEqual([])
}, 240_000)

it('if it was killed, the next run does so', async () => {
  const { run, running } = await begin()
  const { stdout } = spawnSync('pgrep', ['-P', String(running.pid)], { encoding: 'utf8' })
  process.kill(Number(stdout), 'SIGKILL')
  expect(await running.ended).toBe(1)
  expect(processesOf(run).length).toBeGreaterThan(3)
  const next = runVerb('test', ['test/platform/process.test.ts'], { env: { TMPDIR: home } })
  await until(() => processesOf(run).length === 0, { what: 'the end of what was left' })
  next.signal('SIGTERM')
  await next.ended
  expect(runs()).toEqual([])
}, 240_000)
