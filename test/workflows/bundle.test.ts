import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-bundle-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Builds a copy of the workflows in a process of its own. */
const BUILD = `
  const { bundleOnce } = await import('${join(ROOT, 'apps/worker/bundle.ts')}')
  const { code } = await bundleOnce({ workflowsPath: '${join(folder, 'workflows/index.ts')}' })
  console.log((await import('node:crypto')).hash('sha256', code))`
const build = () =>
  execFileSync(process.execPath, ['--input-type=module', '-e', BUILD], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(folder, 'cache') },
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
  })
const kept = () =>
  readdirSync(join(folder, 'cache'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))

it('the workflow code is built once, and again when a source has changed', () => {
  cpSync(join(ROOT, 'workflows'), join(folder, 'workflows'), { recursive: true })
  for (const name of ['apps', 'activities', 'node_modules']) symlinkSync(join(ROOT, name), join(folder, name))
  const first = build()
  expect(build()).toBe(first)
  expect(kept()).toHaveLength(1)
  appendFileSync(join(folder, 'workflows/operation/state/gates.ts'), 'export const more = 1\n')
  expect(build()).not.toBe(first)
  expect(kept()).toHaveLength(2)
}, 60_000)
