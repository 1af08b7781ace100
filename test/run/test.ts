import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { bin, QUICK_IMPORTS, ROOT } from '../../apps/platform/base/paths.ts'
import { createScreen, elapsed } from '../../apps/platform/base/screen.ts'
import { fillCompileCache } from '../../apps/platform/run/compile-cache.ts'
import { locateChromium, locateShell } from '../support/chromium.ts'
import { FAST_POSTGRES, type TestEnv, withTestServers } from './test-servers.ts'

/**
 * `npm test [-- vitest arguments]`: every test against its own real servers, on free ports with temporary data. The
 * last line is the count of passed and failed tests; no test at all is a failure. After a whole run the few tests that
 * failed run once more, alone: a fault fails again, and a timeout of a busy machine is reported as unsteady. A test
 * that fails again runs with its whole file, in case it needs those before it.
 */
const screen = createScreen()
const started = performance.now()

/** The browser tests need a browser: CI refuses to run without one, elsewhere the run reports that they are skipped. */
const findBrowsers = async (): Promise<Record<string, string>> => {
  try {
    return { CHROMIUM_PATH: await locateChromium(screen), CHROMIUM_SHELL_PATH: await locateShell(screen) }
  } catch (error) {
    if (process.env.CI === 'true') throw error
    screen.line('chromium', `browser tests are skipped: ${(error as Error).message}`, 'yellow')
    return {}
  }
}

const END_MS = 10_000
/** This many failed files may be unsteady, on a machine that is slower still; more are a fault. */
const MOST_UNSTEADY = 20

const runVitest = (env: NodeJS.ProcessEnv, report: string, signal: AbortSignal, args: string[]): Promise<number> =>
  new Promise((resolve) => {
    const options = ['run', '--config', join(ROOT, 'test/vitest.config.ts')]
    const failures = `--reporter=${join(ROOT, 'test/run/failures.ts')}`
    const reporters = ['--reporter=default', failures, '--reporter=json', `--outputFile.json=${report}`]
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

type TestCase = { status: string; title: string; ancestorTitles: string[] }
type TestFile = { name: string; status: string; assertionResults: TestCase[] }
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

/** As `-t` compares it. */
const pathOf = ({ ancestorTitles, title }: TestCase): string => [...ancestorTitles, title].join(' > ')

const namesOf = (file: TestFile | undefined, wanted: 'failed' | 'passed'): string[] =>
  (file?.assertionResults ?? []).filter(({ status }) => status === wanted).map(pathOf)

/** Selects the failed tests, unless a file failed outside its tests. */
const patternOf = (failed: TestFile[]): string[] => {
  const names = failed.map((file) => namesOf(file, 'failed'))
  if (names.some(({ length }) => length === 0)) return []
  return [
    '-t',
    `^(${names
      .flat()
      .map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('|')})$`,
  ]
}

const nameOf = ({ name }: TestFile): string => relative(ROOT, name)

/** Whether every test that failed has passed alone; one that did not run has not. */
const isUnsteady = (file: TestFile, alone: TestFile | undefined): boolean => {
  const passed = new Set(namesOf(alone, 'passed'))
  return alone?.status === 'passed' && namesOf(file, 'failed').every((name) => passed.has(name))
}

const passedAlone = (file: TestFile): TestFile => ({
  ...file,
  status: 'passed',
  assertionResults: file.assertionResults.map((test) =>
    test.status === 'failed' ? { ...test, status: 'passed' } : test,
  ),
})

const testAll = async (env: TestEnv, dir: string, signal: AbortSignal) => {
  const [browsers] = await Promise.all([findBrowsers(), fillCompileCache(screen)])
  screen.line('servers', `ready after ${elapsed(performance.now() - started)}`)
  const vitestEnv = { ...env, NODE_ENV: 'test', NODE_OPTIONS: `--import=${QUICK_IMPORTS}`, ...browsers }
  const args = process.argv.slice(2)
  const run = async (name: string, args: string[]) => {
    const report = join(dir, name)
    const code = await runVitest(vitestEnv, report, signal, args)
    signal.throwIfAborted()
    const files = readReport(report)
    return { code, files, failed: files.filter(({ status }) => status === 'failed') }
  }
  /** An error outside every test fails the run, even if no file has failed. */
  const verdict = (code: number, files: TestFile[]) => {
    const counts = countsOf(files)
    const names = files
      .filter(({ status }) => status === 'failed')
      .map((file) => [nameOf(file), ...namesOf(file, 'failed')].join('\n    '))
    return { ...counts, names, failed: counts.failed === 0 && code !== 0 ? 1 : counts.failed }
  }
  const first = await run('report.json', args)
  if (args.length > 0 || first.failed.length === 0 || first.failed.length > MOST_UNSTEADY)
    return verdict(first.code, first.files)

  const again = async (report: string, failed: TestFile[], pattern: string[] = []) => {
    screen.line('again', `${failed.map(nameOf).join(', ')} failed and run once more, alone`, 'yellow')
    const { code, files } = await run(report, [...failed.map(nameOf), '--maxWorkers=1', ...pattern])
    const found = (file: TestFile) => files.find(({ name }) => name === file.name)
    const still = failed.filter((file) => !isUnsteady(file, found(file)))
    for (const file of failed.filter((file) => !still.includes(file)))
      screen.line('unsteady', `${nameOf(file)} failed beside the others and passed alone`, 'yellow')
    return { code, still, found }
  }
  const alone = await again('alone.json', first.failed, patternOf(first.failed))
  const whole = alone.still.length > 0 ? await again('whole.json', alone.still) : undefined
  const files = first.files.map((file) =>
    first.failed.includes(file) ? (whole?.found(file) ?? passedAlone(file)) : file,
  )
  return verdict(whole?.code ?? alone.code, files)
}

const { passed, failed, skipped, names } = await withTestServers(screen, testAll, FAST_POSTGRES).catch(
  (error: Error) => {
    screen.line('test', error.message, 'red')
    return { passed: 0, failed: 1, skipped: 0, names: [] }
  },
)
for (const name of names) screen.line('failed', name, 'red')
screen.line('test', `done in ${elapsed(performance.now() - started)}`)
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
