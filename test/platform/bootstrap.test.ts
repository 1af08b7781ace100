import { spawn } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { until } from '../support/until.ts'
import { running, runVerb } from './support/verb.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A small checkout with the real entry point, one verb, and an npm that records its calls. */
const roots: string[] = []
let root: string
const inRoot = (path: string) => join(root, path)

const NPM = `#!/bin/sh
echo "$@" >> npm.calls
test -f npm.fails && exit 3
test -f npm.hangs && echo $$ > npm.pid && exec sleep 300
test -f npm.slow && until test -f npm.goes; do sleep 0.1; done
mkdir -p node_modules && cp package-lock.json node_modules/.package-lock.json
`
const VERB = `
const [how, value] = process.argv.slice(2)
console.log(JSON.stringify(process.argv.slice(2)))
if (how === 'env') console.log(process.env[value])
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
  const home = mkdtempSync(join(tmpdir(), 'signalbox-door-'))
  roots.push(home)
  root = join(home, 'a #%2F checkout?')
  for (const folder of ['apps/platform', 'bin']) mkdirSync(inRoot(folder), { recursive: true })
  for (const file of ['bootstrap.mjs', 'quick-imports.mjs'])
    cpSync(join(ROOT, 'apps/platform', file), inRoot(`apps/platform/${file}`))
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
    expect(failed.text().trim().split('\n').slice(1)).toEqual(["npm ci did not succeed. See npm's output above."])
  })

  it('installs every kind of package, whatever this shell leaves out', async () => {
    expect(await call('echo').ended).toBe(0)
    expect(installs()[0]).toContain('--include=dev --include=optional --include=peer')
  })

  it('of two at once, one installs and the other waits for it', async () => {
    writeFileSync(inRoot('npm.slow'), '')
    const both = [call('echo', 'a'), call('echo', 'b')]
    const said = () => both.map((one) => one.text()).join('')
    await until(() => said().includes('waiting for another npm ci'), { timeout_ms: 30_000 })
    writeFileSync(inRoot('npm.goes'), '')
    expect(await Promise.all(both.map((one) => one.ended))).toEqual([0, 0])
    expect(installs()).toHaveLength(1)
    expect(said()).toMatch(/waiting for another npm ci \(process \d+\)/)
    expect(existsSync(inRoot('.signalbox/npm-ci.lock'))).toBe(false)
  })

  it('takes over from an install whose process is gone', async () => {
    mkdirSync(inRoot('.signalbox'))
    writeFileSync(inRoot('.signalbox/npm-ci.lock'), '1 0')
    expect(await call('echo').ended).toBe(0)
    expect(installs()).toHaveLength(1)
  })

  it('ends an install with itself', async () => {
    writeFileSync(inRoot('npm.hangs'), '')
    const waiting = call('echo')
    const pid = await until(() =>
      existsSync(inRoot('npm.pid')) ? Number(readFileSync(inRoot('npm.pid'), 'utf8')) : undefined,
    )
    waiting.signal('SIGTERM')
    expect(await waiting.ended).toBe(1)
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    expect(existsSync(inRoot('.signalbox/npm-ci.lock'))).toBe(false)
  })

  it('keeps the servers of this machine away from a proxy', async () => {
    const reached = async (no_proxy: string) => {
      const env = { PATH: `${inRoot('bin')}:${process.env.PATH}`, no_proxy }
      const one = runVerb('echo', ['env', 'NO_PROXY'], { root, env })
      await one.ended
      return one
    }
    const [some, all] = [await reached('corp.example'), await reached('*')]
    expect(some.text()).toContain('\ncorp.example,localhost,127.0.0.1,::1\n')
    expect(all.text()).toContain('\n*\n')
  })

  it('is also that of the client, in a checkout with any path', async () => {
    mkdirSync(inRoot('apps/cli'))
    cpSync(join(ROOT, 'apps/cli/bin.mjs'), inRoot('apps/cli/bin.mjs'))
    writeFileSync(inRoot('apps/cli/main.ts'), VERB)
    const PATH = `${inRoot('bin')}:${process.env.PATH}`
    const client = running(spawn(process.execPath, [inRoot('apps/cli/bin.mjs'), 'inbox'], { env: { PATH } }))
    expect(await client.ended).toBe(0)
    expect(client.text()).toContain('["inbox"]\n')
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
