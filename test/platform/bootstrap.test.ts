import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { runVerb } from './support/verb.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A small checkout with the real entry point, one verb, and an npm that records its calls. */
const roots: string[] = []
let root: string
const inRoot = (path: string) => join(root, path)

const NPM = `#!/bin/sh
echo "$@" >> npm.calls
test -f npm.fails && exit 3
mkdir -p node_modules && cp package-lock.json node_modules/.package-lock.json
`
const VERB = `
const [how, value] = process.argv.slice(2)
console.log(JSON.stringify(process.argv.slice(2)))
if (how === 'exit') process.exit(Number(value))
if (how === 'wait') {
  process.on('SIGTERM', () => process.exit(42))
  setInterval(() => {}, 1000)
  console.log('waiting')
}
`
const lock = (version: string) =>
  JSON.stringify({ lockfileVersion: 3, packages: { '': {}, 'node_modules/some-package': { version } } })

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'signalbox-door-'))
  roots.push(root)
  for (const folder of ['apps/platform', 'bin']) mkdirSync(inRoot(folder), { recursive: true })
  cpSync(join(ROOT, 'apps/platform/bootstrap.mjs'), inRoot('apps/platform/bootstrap.mjs'))
  writeFileSync(inRoot('package.json'), '{"type":"module"}')
  writeFileSync(inRoot('package-lock.json'), lock('1.0.0'))
  writeFileSync(inRoot('apps/platform/echo.ts'), VERB)
  writeFileSync(inRoot('bin/npm'), NPM)
  chmodSync(inRoot('bin/npm'), 0o755)
})
afterAll(() => {
  for (const folder of roots) rmSync(folder, { recursive: true, force: true })
})

const call = (verb: string, ...args: string[]) =>
  runVerb(verb, args, { root, env: { PATH: `${inRoot('bin')}:${process.env.PATH}` } })
const installs = () =>
  existsSync(inRoot('npm.calls')) ? readFileSync(inRoot('npm.calls'), 'utf8').trim().split('\n') : []

describe('the entry of every npm script', () => {
  it('installs missing packages once, and again if the lock file names another version', async () => {
    const first = call('echo', 'a')
    expect(await first.ended).toBe(0)
    expect(first.text()).toContain('node_modules is missing: npm ci')
    const second = call('echo', 'b')
    expect(await second.ended).toBe(0)
    expect(second.text()).toBe('["b"]\n')
    expect(installs()).toHaveLength(1)
    writeFileSync(inRoot('package-lock.json'), lock('1.1.0'))
    const third = call('echo', 'c')
    expect(await third.ended).toBe(0)
    expect(third.text()).toContain('some-package is not 1.1.0')
    expect(installs()).toHaveLength(2)
    expect(installs()[1]).toMatch(/^ci /)
  })

  it('ends with one line if packages cannot be installed', async () => {
    writeFileSync(inRoot('npm.fails'), '')
    const failed = call('echo')
    expect(await failed.ended).toBe(1)
    expect(failed.text().trim().split('\n').slice(1)).toEqual(['npm ci did not succeed. Its words stand above.'])
  })

  it.each(['dance', '../echo', 'Echo', ''])('refuses the unknown verb "%s" with one line', async (verb) => {
    const refused = call(verb)
    expect(await refused.ended).toBe(1)
    expect(refused.text()).toBe(`"${verb}" is no command of this project. "npm run" lists them.\n`)
    expect(installs()).toEqual([])
  })

  it('passes on the exit code', async () => {
    expect(await call('echo', 'exit', '7').ended).toBe(7)
  })

  it('passes on a signal and waits for the end', async () => {
    const waiting = call('echo', 'wait')
    await waiting.says(/waiting/)
    waiting.signal('SIGTERM')
    expect(await waiting.ended).toBe(42)
  })

  it('leaves Ctrl-C to the child, which gets it from the terminal', async () => {
    const waiting = call('echo', 'wait')
    await waiting.says(/waiting/)
    waiting.signal('SIGINT')
    waiting.signal('SIGTERM')
    expect(await waiting.ended).toBe(42)
  })
})
