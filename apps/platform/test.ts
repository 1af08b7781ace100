import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bin, ROOT } from './paths.ts'
import { createScreen, elapsed } from './screen.ts'
import { locateChromium } from './servers/chromium.ts'
import { createServerSecrets, ensureServers, type Servers, startServers } from './servers.ts'

/**
 * `npm test [-- vitest arguments]`: every test against real servers of its own, on free ports with temporary data. The
 * last line is the count of passed and failed tests; no test at all is a failure.
 */
const screen = createScreen()
const started = performance.now()
const dir = mkdtempSync(join(tmpdir(), 'signalbox-test-'))
chmodSync(dir, 0o755) // Postgres runs under another account when we are root
const report = join(dir, 'report.json')
let servers: Servers | undefined

/** The browser tests need a browser: CI refuses to go without, elsewhere the run says that they are skipped. */
const findBrowser = async (): Promise<string | undefined> => {
  try {
    return await locateChromium(screen)
  } catch (error) {
    if (process.env.CI === 'true') throw error
    screen.line('chromium', `browser tests are skipped: ${(error as Error).message}`, 'yellow')
    return undefined
  }
}

const runVitest = (env: NodeJS.ProcessEnv): Promise<number> =>
  new Promise((resolve) => {
    const options = ['run', '--config', join(ROOT, 'test/vitest.config.ts')]
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const args = [...options, ...reporters, ...process.argv.slice(2)]
    const child = spawn(process.execPath, [bin('vitest'), ...args], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...env },
    })
    const pass = (signal: NodeJS.Signals) => child.kill(signal)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, pass)
    child.on('exit', (code) => resolve(code ?? 1))
  })

type Report = {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: { status: string; assertionResults: { status: string }[] }[]
}

/** A file that could not even be loaded has no test of its own, and still is a failure. */
const countsOf = (code: number) => {
  try {
    const { testResults, ...found } = JSON.parse(readFileSync(report, 'utf8')) as Report
    const broken = testResults.filter(
      ({ status, assertionResults }) =>
        status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
    )
    const failed = found.numFailedTests + broken.length
    return {
      passed: found.numPassedTests,
      failed: failed === 0 && code !== 0 ? 1 : failed,
      skipped: found.numPendingTests + found.numTodoTests,
    }
  } catch {
    return { passed: 0, failed: 1, skipped: 0 }
  }
}

let counts = { passed: 0, failed: 1, skipped: 0 }
try {
  const [programs, browser] = await Promise.all([ensureServers(screen), findBrowser()])
  servers = await startServers({
    dir,
    programs,
    screen,
    plain: true,
    secrets: createServerSecrets([]),
    prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
    // A test database lives for minutes: no power cut is survived, every kill of the server is.
    postgres_settings: { max_connections: '400', fsync: 'off', full_page_writes: 'off' },
  })
  screen.line('servers', `ready after ${elapsed(performance.now() - started)}`)
  const code = await runVitest({
    DATABASE_URL: servers.postgres.admin_url,
    REDIS_URL: servers.redis.url(),
    NATS_URL: servers.nats.url(),
    TEMPORAL_ADDRESS: servers.temporal.address,
    CHROMIUM_PATH: browser ?? '',
    NODE_ENV: 'test',
  })
  counts = countsOf(code)
} catch (error) {
  screen.line('test', (error as Error).message, 'red')
} finally {
  await servers?.stop()
  rmSync(dir, { recursive: true, force: true })
}
screen.line('test', `done in ${elapsed(performance.now() - started)}`)
const { passed, failed, skipped } = counts
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
