import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bin, ROOT } from './base/paths.ts'
import { createScreen, elapsed, paint } from './base/screen.ts'
import { unusedCodes } from './check/codes.ts'
import { staleMigrations, staleProto, staleSchemas } from './check/generated.ts'
import { lockProblems } from './check/lock-file.ts'
import { printMeasures } from './check/measures.ts'
import { makeClientTypes, staleOpenapi } from './check/openapi/files.ts'
import { lintByRedocly, lintBySpectral } from './check/openapi/lint.ts'
import { staleRooms } from './check/rooms.ts'
import { staleCards } from './check/text/cards.ts'
import { brokenReferences, ownTexts } from './check/text/documents.ts'
import { unknownSettings } from './check/text/settings.ts'
import { oddWords, printWords } from './check/text/words.ts'
import { knownSettings, staleSettings } from './deploy/reference.ts'
import { run } from './servers/sources.ts'

/**
 * `npm run check`: all CI checks except tests. Prints a table of results, then the problems. With --measures it prints
 * how long files and functions are instead; with --words, every place that has an English habit to avoid.
 */
type Check = { name: string; what: string; run: () => Promise<string[]> }

const TOOL_MS = 600_000
const SOURCES = ['apps', 'workflows', 'activities', 'db', 'test'].filter((folder) => existsSync(join(ROOT, folder)))

/** A tool that prints the problems and exits with a code other than 0. */
const tool = (name: string, what: string, args: string[]): Check => ({
  name,
  what,
  run: () =>
    runTool(args).then(
      () => [],
      (error: Error) => [error.message],
    ),
})

const runTool = ([program = '', ...args]: string[]) =>
  run(process.execPath, [bin(program), ...args], { timeout_ms: TOOL_MS, cwd: ROOT, env: { NO_COLOR: '1' }, lines: 400 })

/** The native compiler: a third of the time. It has no API yet, so tools that parse use the package `typescript`. */
const TSC = '../typescript7/bin/tsc'

const CHECKS: Check[] = [
  tool('types', 'services', [TSC, '--noEmit', '-p', '.']),
  tool('types', 'console', [TSC, '--noEmit', '-p', 'apps/console']),
  tool('lint', 'and format', ['biome', 'check', '--config-path', 'test/lint.json', '.']),
  tool('boundaries', 'imports', ['depcruise', '--config', 'test/boundaries.cjs', '--output-type', 'err', ...SOURCES]),
  tool('unused', 'code and packages', ['knip', '--config', 'test/knip.json', '--no-progress']),
  { name: 'rooms', what: 'of the tree', run: async () => staleRooms() },
  {
    name: 'documents',
    what: 'references, settings',
    run: async () => [...brokenReferences(), ...unknownSettings(ownTexts(), knownSettings())],
  },
  { name: 'cards', what: 'tables, events, calls', run: async () => staleCards() },
  { name: 'words', what: 'English', run: async () => oddWords() },
  { name: 'packages', what: 'install scripts, checksums', run: async () => lockProblems() },
  { name: 'codes', what: 'source and test of each', run: unusedCodes },
  { name: 'generated', what: 'proto', run: staleProto },
  { name: 'generated', what: 'migrations', run: staleMigrations },
  { name: 'generated', what: 'openapi', run: staleOpenapi },
  { name: 'generated', what: 'schemas', run: staleSchemas },
  { name: 'generated', what: 'settings', run: async () => staleSettings() },
  { name: 'openapi', what: 'by redocly', run: lintByRedocly },
  { name: 'openapi', what: 'by spectral', run: lintBySpectral },
]

/** Two at a time, because the tools themselves use more than one core. */
const AT_ONCE = 2

if (process.argv.includes('--measures')) {
  printMeasures()
  process.exit(0)
}

if (process.argv.includes('--words')) {
  printWords()
  process.exit(0)
}

const screen = createScreen()
const queue = [...CHECKS]
const failures: { title: string; problems: string[] }[] = []

const work = async () => {
  for (let check = queue.shift(); check; check = queue.shift()) {
    const started = performance.now()
    const problems = await check.run().catch((error: Error) => [error.message])
    const title = `${check.name.padEnd(12)}${check.what.padEnd(30)}`
    const verdict = problems.length === 0 ? paint('green', 'ok    ') : paint('red', 'failed')
    screen.line('check', `${title}${verdict}  ${elapsed(performance.now() - started)}`)
    if (problems.length > 0) failures.push({ title: `${check.name} (${check.what})`, problems })
  }
}

const started = performance.now()
await makeClientTypes() // Both compilers read them.
await Promise.all(Array.from({ length: AT_ONCE }, work))
for (const { title, problems } of failures) console.error(`\n${paint('red', title)}\n${problems.join('\n')}`)
const verdict = failures.length === 0 ? 'all checks passed' : `${failures.length} of ${CHECKS.length} checks failed`
screen.line('check', `${verdict} in ${elapsed(performance.now() - started)}`, failures.length === 0 ? 'green' : 'red')
process.exitCode = failures.length === 0 ? 0 : 1
