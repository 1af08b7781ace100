import { proxyActivities } from '@temporalio/workflow'

/** The baseline: the smallest scheduler of a graph inside a workflow, over activities that do nothing. */
export type BareNode = { node_id: string; depends_on: string[] }

const { nothing } = proxyActivities<{ nothing: (node_id: string) => Promise<void> }>({
  startToCloseTimeout: '30 s',
  retry: { maximumAttempts: 5 },
})

export async function bareGraph(nodes: BareNode[], max_parallel: number): Promise<number> {
  const waitsFor = new Map(nodes.map((node) => [node.node_id, node.depends_on.length]))
  const dependents = new Map<string, string[]>()
  for (const node of nodes)
    for (const dependency of node.depends_on)
      dependents.set(dependency, [...(dependents.get(dependency) ?? []), node.node_id])
  const ready = nodes.filter((node) => node.depends_on.length === 0).map((node) => node.node_id)
  let done = 0
  let inFlight = 0
  return new Promise((resolve, reject) => {
    const launch = () => {
      while (inFlight < max_parallel && ready.length > 0) {
        const node_id = ready.shift() as string
        inFlight += 1
        nothing(node_id).then(() => finished(node_id), reject)
      }
      if (done === nodes.length) resolve(done)
    }
    const finished = (node_id: string) => {
      inFlight -= 1
      done += 1
      for (const dependent of dependents.get(node_id) ?? []) {
        const left = (waitsFor.get(dependent) ?? 1) - 1
        waitsFor.set(dependent, left)
        if (left === 0) ready.push(dependent)
      }
      launch()
    }
    launch()
  })
}
