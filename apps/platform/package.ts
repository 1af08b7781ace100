import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build, type Rolldown } from 'vite'
import { ROOT } from './base/paths.ts'
import { createScreen } from './base/screen.ts'
import { billOf, packageAt } from './deploy/sbom.ts'
import { buildExecutable, isTarget, TARGETS, thisMachine } from './run/executable.ts'

/**
 * `npm run package [-- --to FOLDER] [-- --executable [TARGET…]]`: packages the command-line client for machines without
 * this checkout. `dist/signalbox-<version>.tgz` runs by npx with Node 20 or newer; an executable includes Node. The
 * bill of materials is beside it: `.cdx.json`.
 */
const CLI = join(ROOT, 'apps/cli')
const screen = createScreen()

/** The code that `signalbox pack` loads on demand: a separate file, so that the client starts without it. */
const AUTHORS = join(ROOT, 'apps/platform/packs/main.ts')
const besideClient = {
  name: 'beside-client',
  enforce: 'pre' as const,
  resolveId: (id: string, from: string | undefined) =>
    from && id.endsWith('platform/packs/main.ts') ? { id: './packs.cjs', external: true } : null,
}

/** Bundles an entry into one CommonJS file; returns the packages in it. */
const bundle = async (entry: string, folder: string, name: string): Promise<string[]> => {
  const built = (await build({
    configFile: false,
    root: ROOT,
    logLevel: 'warn',
    ssr: { noExternal: true },
    plugins: [besideClient],
    build: {
      ssr: entry,
      target: 'node20',
      minify: true,
      outDir: folder,
      emptyOutDir: false,
      rolldownOptions: { output: { format: 'cjs', entryFileNames: name, codeSplitting: false } },
    },
  })) as Rolldown.RolldownOutput
  const modules = built.output.flatMap((chunk) => (chunk.type === 'chunk' ? Object.keys(chunk.modules) : []))
  const packages = modules.flatMap((id) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? [])
  return packages
}

/** The licenses of the bundled packages, which require to be passed on. */
const licensesOf = (packages: string[]): string =>
  packages
    .map((name) => {
      const folder = join(ROOT, 'node_modules', name)
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
      if (!file) throw new Error(`${name} has no license file, and the client bundles it`)
      return `${name}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)

const manifestOf = ({ version, license }: { version: string; license: string }) => ({
  name: 'signalbox',
  version,
  description: 'The command line of Signalbox: reviewed plans for infrastructure',
  license,
  engines: { node: '>=20' },
  bin: { signalbox: 'packaged.cjs' },
})

const pack = async (stage: string, dist: string): Promise<string> => {
  const root = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string; license: string }
  const packages = [
    ...(await bundle(join(CLI, 'main.ts'), stage, 'signalbox.cjs')),
    ...(await bundle(AUTHORS, stage, 'packs.cjs')),
  ]
  for (const part of ['catalog/packs', 'operations/packs', 'operations/policies/gates', 'platform/packs/templates'])
    cpSync(join(ROOT, 'apps', part), join(stage, 'shipped', part), {
      recursive: true,
      filter: (path) => !path.endsWith('.ts'),
    })
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifestOf(root), null, 2)}\n`)
  const bundled = [...new Set(packages)].sort()
  writeFileSync(join(stage, 'THIRD-PARTY-LICENSES'), licensesOf(bundled))
  for (const file of [join(ROOT, 'LICENSE'), join(CLI, 'README.md'), join(CLI, 'packaged.cjs')])
    cpSync(file, join(stage, basename(file)))
  mkdirSync(dist, { recursive: true })
  const shipped = bundled.map((name) => packageAt(join(ROOT, 'node_modules', name)))
  writeFileSync(join(dist, `signalbox-${root.version}.cdx.json`), billOf('signalbox', shipped))
  const options = ['--silent', '--pack-destination', dist]
  execFileSync('npm', ['pack', ...options], { cwd: stage, stdio: ['ignore', 'ignore', 'inherit'] })
  return join(dist, `signalbox-${root.version}.tgz`)
}

const stage = mkdtempSync(join(tmpdir(), 'signalbox-package-'))
try {
  const { values, positionals } = parseArgs({
    options: { to: { type: 'string', default: join(ROOT, 'dist') }, executable: { type: 'boolean' } },
    allowPositionals: true,
  })
  const dist = resolve(values.to)
  screen.line('package', await pack(stage, dist), 'green')
  for (const target of values.executable ? (positionals.length > 0 ? positionals : [thisMachine()]) : []) {
    if (!isTarget(target)) throw new Error(`There is no executable for ${target}. Name one of ${TARGETS.join(', ')}.`)
    const output = join(dist, `signalbox-${target}`)
    screen.line(
      'executable',
      await buildExecutable(screen, { main: join(stage, 'signalbox.cjs'), output, target }),
      'green',
    )
  }
} catch (error) {
  screen.line('package', (error as Error).message, 'red')
  process.exitCode = 1
} finally {
  rmSync(stage, { recursive: true, force: true })
}
