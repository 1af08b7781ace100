import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cachePath } from '../../apps/platform/servers/cache.ts'
import { onPath, run, type Source } from '../../apps/platform/servers/sources.ts'
import {
  BUILD_MS,
  builtByGo,
  findEtcd,
  findHelm,
  findKubectl,
  findTool,
  goProgram,
  inScratch,
  moveIn,
} from './cluster-tools.ts'

/**
 * `npm run test:kubernetes [-- vitest arguments]`: the agent and the chart against a real kube-apiserver. It needs Go,
 * pip and a Debian; building the server takes 7 minutes of CPU time, once.
 */
const VERSION = '1.37.2'
const STAGING = VERSION.replace(/^1/, '0')
/** The module replaces its parts with folders that no proxy has; their own modules have the same files. */
const built = builtByGo({
  ...{ module: 'k8s.io/kubernetes', program: 'cmd/kube-apiserver', version: VERSION },
  flags: `-X k8s.io/component-base/version.gitVersion=v${VERSION}`,
  replacementsOf: (text) =>
    [...text.matchAll(/^\s+(k8s\.io\/\S+) => \.\/staging/gm)].map(([, name]) => `${name} => ${name} v${STAGING}`),
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
        const said = await run(goProgram(), ['mod', 'download', '-json', module], {
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
