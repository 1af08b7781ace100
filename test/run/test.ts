import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { bin, QUICK_IMPORTS, ROOT } from '../../apps/platform/base/paths.ts'
import { createScreen, elapsed } from '../../apps/platform/base/screen.ts'
import { fillCompileCache } from '../../apps/platform/run/compile-cache.ts'
import { locateChromium } from '../support/chromium.ts'
import { FAST_POSTGRES, type TestEnv, withTestServers } from './test-servers.ts'

/**
 * `npm test [-- vitest arguments]`: every test against its own real servers, on free ports with temporary data. The
 * last line is the count of passed and failed tests; no test at all is a failure. After a whole run the few files that
 * failed run once more, alone: a fault fails again, and a timeout of a busy machine is reported as unsteady.
 */
const screen = createScreen()
const started = performance.now()

/** The browser tests need a browser: CI refuses to run without one, elsewhere the run reports that they are skipped. */
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
/** This many failed files may be unsteady; more are a fault. */
const MOST_UNSTEADY = 8

const runVitest = (env: NodeJS.ProcessEnv, report: string, signal: AbortSignal, args: string[]): Promise<number> =>
  new Promise((resolve) => {
    const options = ['run', '--config', join(ROOT, 'test/vitest.config.ts')]
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const child = spawn(process.execPath, [bin('vitest'), ...options, ...reporters, ...args], {
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

type TestFile = { name: string; status: string; assertionResults: { status: string }[] }
const readReport = (report: string) =>
  (JSON.parse(readFileSync(report, 'utf8')) as { testResults: TestFile[] }).testResults

/** A file that could not even be loaded has no failed test of its own, but still counts as a failure. */
const countsOf = (files: TestFile[]) => {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const { status, assertionResults } of files) {
    const failed = assertionResults.filter((test) => test.status === 'failed').length
    const passed = assertionResults.filter((test) => test.status === 'passed').length
    counts.passed += passed
    counts.failed += status === 'failed' ? Math.max(1, failed) : failed
    counts.skipped += assertionResults.length - passed - failed
  }
  return counts
}

const testAll = async (env: TestEnv, dir: string, signal: AbortSignal) => {
  const [browser] = await Promise.all([findBrowser(), fillCompileCache(screen)])
  screen.line('servers', `ready after ${elapsed(performance.now() - started)}`)
  const vitestEnv = {
    ...env,
    NODE_ENV: 'test',
    NODE_OPTIONS: `--import=${QUICK_IMPORTS}`,
    ...(browser && { CHROMIUM_PATH: browser }),
  }
  const args = process.argv.slice(2)
  const run = async (name: string, args: string[]) => {
    const report = join(dir, name)
    const code = await runVitest(vitestEnv, report, signal, args)
    signal.throwIfAborted()
    const files = readReport(report)
    return { code, files, failed: files.filter(({ status }) => status === 'failed').map((file) => file.name) }
  }
  /** An error outside every test fails the run, even if no file has failed. */
  const verdict = (code: number, files: TestFile[]) => {
    const counts = countsOf(files)
    return { ...counts, failed: counts.failed === 0 && code !== 0 ? 1 : counts.failed }
  }
  const first = await run('report.json', args)
  if (args.length > 0 || first.failed.length === 0 || first.failed.length > MOST_UNSTEADY)
    return verdict(first.code, first.files)

  const names = first.failed.map((file) => relative(ROOT, file))
  screen.line('again', `${names.join(', ')} failed and run once more, alone`, 'yellow')
  const again = await run('again.json', [...names, '--maxWorkers=1'])
  for (const file of first.failed.filter((file) => !again.failed.includes(file)))
    screen.line('unsteady', `${relative(ROOT, file)} failed beside the others and passed alone`, 'yellow')
  return verdict(again.code, [...first.files.filter(({ name }) => !first.failed.includes(name)), ...again.files])
}

const { passed, failed, skipped } = await withTestServers(screen, testAll, FAST_POSTGRES).catch((error: Error) => {
  screen.line('test', error.message, 'red')
  return { passed: 0, failed: 1, skipped: 0 }
})
screen.line('test', `done in ${elapsed(performance.now() - started)}`)
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
