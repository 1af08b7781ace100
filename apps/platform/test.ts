import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bin, QUICK_IMPORTS, ROOT } from './base/paths.ts'
import { createScreen, elapsed } from './base/screen.ts'
import { fillCompileCache } from './run/compile-cache.ts'
import { locateChromium } from './servers/chromium.ts'
import { FAST_POSTGRES, type TestEnv, withTestServers } from './tests/test-servers.ts'

/**
 * `npm test [-- vitest arguments]`: every test against real servers of its own, on free ports with temporary data. The
 * last line is the count of passed and failed tests; no test at all is a failure.
 */
const screen = createScreen()
const started = performance.now()

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

const END_MS = 10_000

const runVitest = (env: NodeJS.ProcessEnv, report: string, signal: AbortSignal): Promise<number> =>
  new Promise((resolve) => {
    const options = ['run', '--config', join(ROOT, 'test/vitest.config.ts')]
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const child = spawn(process.execPath, [bin('vitest'), ...options, ...reporters, ...process.argv.slice(2)], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...env },
    })
    const end = () => {
      child.kill('SIGTERM')
      setTimeout(() => child.kill('SIGKILL'), END_MS).unref()
    }
    signal.addEventListener('abort', end)
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
const countsOf = (code: number, report: string) => {
  const { testResults, ...found } = JSON.parse(readFileSync(report, 'utf8')) as Report
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  )
  const failed = found.numFailedTests + broken.length
  return {
    passed: found.numPassedTests,
    failed: failed === 0 && code !== 0 ? 1 : failed,
    skipped: found.numPendingTests + found.numTodoTests,
  }
}

const testAll = async (env: TestEnv, dir: string, signal: AbortSignal) => {
  const [browser] = await Promise.all([findBrowser(), fillCompileCache(screen)])
  screen.line('servers', `ready after ${elapsed(performance.now() - started)}`)
  const report = join(dir, 'report.json')
  const code = await runVitest(
    { ...env, NODE_ENV: 'test', NODE_OPTIONS: `--import=${QUICK_IMPORTS}`, ...(browser && { CHROMIUM_PATH: browser }) },
    report,
    signal,
  )
  signal.throwIfAborted()
  return countsOf(code, report)
}

const { passed, failed, skipped } = await withTestServers(screen, testAll, FAST_POSTGRES).catch((error: Error) => {
  screen.line('test', error.message, 'red')
  return { passed: 0, failed: 1, skipped: 0 }
})
screen.line('test', `done in ${elapsed(performance.now() - started)}`)
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
