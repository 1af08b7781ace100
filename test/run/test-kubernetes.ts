import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { elapsed } from '../../apps/platform/base/screen.ts'
import { cachePath } from '../../apps/platform/servers/cache.ts'
import { onPath, run, type Source, which } from '../../apps/platform/servers/sources.ts'
import { findEtcd, findHelm, findKubectl, findTool, inScratch, moveIn } from './cluster-tools.ts'

/**
 * `npm run test:kubernetes [-- vitest arguments]`: the agent and the chart against a real kube-apiserver. It needs Go,
 * pip and a Debian; building the server takes 7 minutes of CPU time, once.
 */
const VERSION = '1.37.2'
const MODULE = `k8s.io/kubernetes@v${VERSION}`
const STAGING = VERSION.replace(/^1/, '0')
const BUILD_MS = 3_600_000

/** The module replaces its parts with folders that no proxy has; their own modules have the same files. */
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

/** Kinds of others that the chart uses, from the modules that define them. */
const KINDS: Record<string, string[]> = {
  'sigs.k8s.io/gateway-api@v1.6.3': ['config/crd/standard/gateway.networking.k8s.io_httproutes'],
  'github.com/prometheus-operator/prometheus-operator@v0.90.1': ['servicemonitors', 'prometheusrules'].map(
    (kind) => `example/prometheus-operator-crd/monitoring.coreos.com_${kind}`,
  ),
  'github.com/kedacore/keda/v2@v2.21.0': ['scaledobjects', 'triggerauthentications'].map(
    (kind) => `config/crd/bases/keda.sh_${kind}`,
  ),
}
const described = (target: string): Source => ({
  what: `go mod download ${Object.keys(KINDS).join(' ')}`,
  run: () =>
    inScratch(async (scratch) => {
      const texts: string[] = []
      for (const [module, files] of Object.entries(KINDS)) {
        const said = await run(which('go') ?? '/usr/local/go/bin/go', ['mod', 'download', '-json', module], {
          ...{ timeout_ms: BUILD_MS, env: { GOFLAGS: '-mod=mod' }, cwd: scratch },
        })
        const { Dir } = JSON.parse(said.slice(said.indexOf('{'))) as { Dir: string }
        texts.push(...files.map((file) => readFileSync(join(Dir, `${file}.yaml`), 'utf8')))
      }
      const made = join(scratch, 'kinds.yaml')
      writeFileSync(made, texts.join('\n---\n'))
      return moveIn(made, target)
    }),
})

const kinds = cachePath('kinds', '1')
const server = cachePath('kube-apiserver', VERSION)
const helm = await findHelm()
Object.assign(process.env, {
  KUBE_ETCD: await findEtcd(),
  KUBE_KUBECTL: await findKubectl(),
  KUBE_HELM: helm,
  CHART_HELM: helm,
  KUBE_KINDS: await findTool('the kinds', kinds, [described(kinds)]),
  KUBE_APISERVER: await findTool('kube-apiserver', server, [onPath(['kube-apiserver'], '1.32.0'), built(server)]),
})
if (process.argv.length < 3) process.argv.push('test/kubernetes')
await import('./test.ts')
