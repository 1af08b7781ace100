import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT } from '../base/paths.ts'
import { createScreen, misused, readFlags } from '../base/screen.ts'
import { systemPackage } from '../servers/packages.ts'
import { locate, onPath, run } from '../servers/sources.ts'
import { billOfImage } from './sbom.ts'

/**
 * `npm run image [-- --base debian] [--tag NAME] [--prove]`: builds the image of the current commit with
 * deploy/Dockerfile and buildah. Times in it are those of the commit, so two builds of a commit have one digest.
 * `--base debian` fetches no image: the base is made of Debian's packages, for machines that cannot reach an image
 * registry. `--prove` builds twice, compares the digests, and runs a production installation from the files of the
 * image. `dist/signalbox-image.cdx.json` is its bill of materials.
 */
const DOCKERFILE = 'apps/platform/deploy/Dockerfile'
const BILL = 'dist/signalbox-image.cdx.json'
const BUILD_MS = 1_800_000
const DEBIAN = 'localhost/signalbox-debian'
const BUILDER = 'localhost/signalbox-node'
const screen = createScreen()

const options = {
  base: { type: 'string' },
  tag: { type: 'string', default: 'signalbox' },
  prove: { type: 'boolean', default: false },
} as const
const { values } = readFlags(
  { options },
  misused('usage: npm run image [-- --base debian|IMAGE] [--tag NAME] [--prove]'),
)

/** Works without a daemon, and without the rights that a separate container needs. */
const STORAGE = { STORAGE_DRIVER: process.env.STORAGE_DRIVER ?? 'vfs', BUILDAH_ISOLATION: 'chroot' }
const programOf = (name: string, version: string) =>
  locate(name, [onPath([name], version), systemPackage({ apt: name }, [name])], `install ${name}.`, screen)
const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()

const layer = async (buildah: (...args: string[]) => Promise<string>, from: string, tree: string, name: string) => {
  const container = await buildah('from', from)
  await buildah('add', '--quiet', container, tree, '/')
  if (name === BUILDER) await buildah('config', '--env', `NPM_CONFIG_CAFILE=${AUTHORITIES}`, container)
  await buildah('commit', '--quiet', '--rm', container, name)
}
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'

/** Makes the base from Debian's packages; build stages also get this Node and this machine's npm and authorities. */
const makeBases = async (buildah: (...args: string[]) => Promise<string>, scratch: string): Promise<string[]> => {
  const tar = join(scratch, 'debian.tar')
  const mmdebstrap = await programOf('mmdebstrap', '1.3.0')
  const packages = '--include=libstdc++6,ca-certificates,tzdata'
  await run(mmdebstrap, ['--variant=essential', packages, 'bookworm', tar], { timeout_ms: BUILD_MS })
  await layer(buildah, 'scratch', tar, DEBIAN)
  const tree = join(scratch, 'node')
  const npm = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())
  const at = '/usr/local/lib/node_modules/npm'
  mkdirSync(join(tree, 'usr/local/bin'), { recursive: true })
  cpSync(process.execPath, join(tree, 'usr/local/bin/node'))
  cpSync(dirname(dirname(npm)), join(tree, at), { recursive: true, dereference: true })
  for (const name of ['npm', 'npx'])
    writeFileSync(join(tree, `usr/local/bin/${name}`), `#!/bin/sh\nexec node ${at}/bin/${name}-cli.js "$@"\n`, {
      mode: 0o755,
    })
  mkdirSync(join(tree, dirname(AUTHORITIES)), { recursive: true })
  cpSync(AUTHORITIES, join(tree, AUTHORITIES))
  await layer(buildah, DEBIAN, tree, BUILDER)
  return ['--build-arg', `NODE=${BUILDER}`, '--build-arg', `BASE=${DEBIAN}`]
}

const build = async (scratch: string) => {
  const program = await programOf('buildah', '1.28.0')
  const buildah = async (...args: string[]) =>
    (await run(program, args, { timeout_ms: BUILD_MS, cwd: ROOT, env: STORAGE, lines: 20 })).trim()
  const bases = values.base === 'debian' ? await makeBases(buildah, scratch) : []
  if (values.base && bases.length === 0) bases.push('--build-arg', `BASE=${values.base}`)
  const revision = git('rev-parse', '--short=12', 'HEAD')
  if (git('status', '--porcelain')) screen.line('image', 'uncommitted changes are left out', 'yellow')
  const tree = join(scratch, 'tree')
  mkdirSync(tree)
  execFileSync('sh', ['-c', `git archive HEAD | tar -x -C ${tree}`], { cwd: ROOT })
  const same = ['--timestamp', git('log', '-1', '--format=%ct'), '--build-arg', `REVISION=${revision}`, '--no-cache']
  const once = async (text: string) => {
    const args = ['bud', ...same, ...bases, '--ignorefile', join(tree, '.dockerignore'), '-f', join(tree, DOCKERFILE)]
    await screen.step('image', text, () => buildah(...args, '-t', values.tag, tree))
    return buildah('inspect', '--type', 'image', '--format', '{{.FromImageDigest}}', values.tag)
  }
  const digest = await once(`building ${values.tag} at ${revision}`)
  screen.line('image', `${values.tag} ${digest}`, 'green')
  const container = await buildah('from', values.tag)
  try {
    const mounted = await buildah('mount', container)
    mkdirSync(join(ROOT, 'dist'), { recursive: true })
    writeFileSync(join(ROOT, BILL), billOfImage(join(mounted, 'signalbox')))
    screen.line('image', BILL, 'green')
    if (!values.prove) return
    const again = await once('building it again')
    if (again !== digest) throw new Error(`two builds of one commit differ: ${digest}, ${again}`)
    screen.line('image', 'the second build has the same digest', 'green')
    const files = join(scratch, 'signalbox-image')
    for (const path of ['signalbox', 'usr/local/bin/node'])
      cpSync(join(mounted, path), join(files, path), { recursive: true, verbatimSymlinks: true })
    const test = [join(ROOT, 'test/run/test.ts'), 'test/platform/secured.test.ts']
    execFileSync(process.execPath, test, { stdio: 'inherit', cwd: ROOT, env: { ...process.env, IMAGE_ROOT: files } })
  } finally {
    await buildah('rm', container)
  }
}

const scratch = mkdtempSync(join(tmpdir(), 'signalbox-image-'))
try {
  await build(scratch)
} catch (error) {
  screen.line('image', (error as Error).message, 'red')
  process.exitCode = 1
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
