import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Agent, type Lab, startLab } from '../../agent/support/agent.ts'
import { forgery } from '../../agent/support/refusal.ts'
import { type spawnWorker, startWorker } from '../../operations/support/worker.ts'
import { type Any, type Kubernetes, startKubernetes, TOOLS } from './server.ts'

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
type Bring = typeof startWorker | typeof spawnWorker
type Change = { inputs?: object; apply?: object; more?: object }

/** Operations, an agent and a cluster; sources are folders of files. */
export const startKubeLab = async ({ bringWorker = startWorker as Bring } = {}) => {
  const lab: Lab = await startLab(['infra'], { bringWorker })
  const kube: Kubernetes = await startKubernetes(lab.folder)
  const sources = lab.place('sources')
  const cluster = {
    kubeconfig: kube.kubeconfig,
    namespaces: ['web*', 'own*'],
    cluster_kinds: ['Namespace', 'Custom*', 'ClusterRole'],
  }
  const file = {
    ...{ pools: ['infra'], uid: 0, concurrency: 6 },
    programs: forgery(lab),
    kubernetes: {
      ...TOOLS(),
      sources: { all: { path: sources } },
      clusters: { eu1: cluster, nowhere: { ...cluster, kubeconfig: kube.nowhere } },
    },
  }
  let agent: Agent = lab.startAgent(file)
  const inputsOf = (path: string, more: object = {}) => ({
    ...{ cluster: 'eu1', source: 'all', path, namespace: path.split('/')[0], set: path.replaceAll('/', '-'), ...more },
  })
  const node = (node_id: string, job: string, inputs: object, outputs: string[], more: object = {}) => ({
    ...{ node_id, executor: 'external', pool: 'infra', with: { job: `kubernetes.${job}`, inputs } },
    ...{ outputs: Object.fromEntries(outputs.map((name) => [name, `/${name}`])), ...more },
  })
  /** A preview, a gate and the apply, with an undo that compensates it. */
  const change = (path: string, { inputs = {}, apply = {}, more = {} }: Change = {}) => {
    const act = { cluster: 'eu1', wait: false, preview: { $from: 'nodes/plan/outputs/preview' }, ...apply }
    const undo = { executor: 'external', with: { job: 'kubernetes.undo', inputs: act } }
    return {
      nodes: [
        node('plan', 'preview', inputsOf(path, inputs), ['preview']),
        node('apply', 'apply', act, ['applied'], { depends_on: ['plan'], idempotent: true, compensate: undo, ...more }),
      ],
      gates: [{ gate_id: 'go', policy, guards: ['apply'] }],
    }
  }
  return {
    ...{ lab, kube, inputsOf, node, change },
    agent: () => agent,
    restart: async () => {
      agent.child.kill('SIGKILL')
      await agent.ended
      agent = lab.startAgent(file)
    },
    /** Writes a file of a source; objects are written as JSON. */
    write: (path: string, content: string | object[]) => {
      const at = join(sources, path)
      mkdirSync(dirname(at), { recursive: true })
      const text = typeof content === 'string' ? content : content.map((one) => JSON.stringify(one)).join('\n---\n')
      writeFileSync(at, text)
    },
    previewOf: (gate: Any): Any => gate.subject.bound_outputs[0].value,
    /** The whole change, approved. */
    carryOut: async (path: string, options: Change = {}) => {
      const operation = await lab.startGraph(change(path, options))
      const gate = await lab.approve(operation)
      const done = await lab.reaches(operation, 'succeeded', 'apply')
      return { operation, gate, done }
    },
    stop: async () => {
      await kube.stop()
      await lab.stop()
    },
  }
}
export type KubeLab = Awaited<ReturnType<typeof startKubeLab>>

const meta = (name: string, more: object = {}) => ({ metadata: { name, ...more } })
export const configMap = (name: string, data: object, more: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', ...meta(name, more), data },
})
export const secret = (name: string, stringData: object) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', ...meta(name), stringData },
})
export const deployment = (name: string, image: string, more: object = {}) => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', ...meta(name) },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'app', image }] } },
    ...more,
  },
})
/** An object without the members that only the server writes. */
export const bareOf = ({ status: _, ...object }: Any): Any => {
  const {
    managedFields: _m,
    resourceVersion: _r,
    generation: _g,
    uid: _u,
    creationTimestamp: _c,
    ...metadata
  } = object.metadata
  return { ...object, metadata }
}
