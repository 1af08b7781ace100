import { carryOut } from '../../cli/agent/attempt.ts'
import { type AgentFile, readAgentFile } from '../../cli/agent/tools/file.ts'
import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { CelError, compileCel } from '../../shared/expressions/cel.ts'
import { takeOutputs } from '../../shared/expressions/outputs.ts'
import { resolveValue, ValueError } from '../../shared/expressions/values.ts'
import { type Ground, openGround } from '../proving/ground.ts'
import { endOf } from '../proving/rules.ts'
import type { PackFolder } from './folder.ts'
import { planTest } from './plan.ts'

export type RanNode = {
  test: string
  node_id: string
  ends: 'succeeded' | 'skipped' | 'failed'
  says: string
  /** The end of the log of a failed node. */
  log?: string[]
}
type Outputs = Record<string, { outputs: Record<string, unknown> }>

const RUN_S = 600
const LAST_LINES = 20

/**
 * Runs the plan of each test on this machine: the agent itself runs its nodes in order, with the tools and sources of
 * the agent's file. Gates are passed; no server or catalog is used. A test ends at the first node that fails.
 */
export const runSandbox = async (
  folder: PackFolder,
  agent_file: string,
  only: string | undefined,
  told: (node: RanNode) => void,
): Promise<RanNode[]> => {
  const file = readAgentFile(agent_file)
  const ran: RanNode[] = []
  for (const { value } of folder.tests)
    for (const test of value.tests) {
      if (only !== undefined && test.name !== only) continue
      const planned = planTest(folder, test)
      if ('refused' in planned) continue
      // One ground for all nodes of a plan, so that one node can fetch what another keeps.
      const ground = await openGround('sandbox')
      const outputs: Outputs = {}
      try {
        for (const node of inOrder(planned.made.document.nodes)) {
          const one = { test: test.name, node_id: node.node_id, ...(await runNode(file, ground, node, outputs)) }
          ran.push(one)
          told(one)
          if (one.ends === 'failed' && node.on_failure !== 'tolerate') break
        }
      } finally {
        ground.close()
      }
    }
  return ran
}

const inOrder = (nodes: readonly PlanNode[]): PlanNode[] => {
  const byId = new Map(nodes.map((node) => [node.node_id, node]))
  const order = new Set<PlanNode>()
  const visit = (node: PlanNode) => {
    if (order.has(node)) return
    for (const id of node.depends_on) visit(byId.get(id) as PlanNode)
    order.add(node)
  }
  nodes.forEach(visit)
  return [...order]
}

type Ran = Omit<RanNode, 'test' | 'node_id'>

const runNode = async (file: AgentFile, ground: Ground, node: PlanNode, outputs: Outputs): Promise<Ran> => {
  if (node.kind !== 'task') return { ends: 'skipped', says: `a ${node.kind} takes no time here` }
  let values: Record<string, unknown>
  try {
    if (node.when !== undefined && !compileCel(node.when, ['nodes']).test({ nodes: outputs }))
      return { ends: 'skipped', says: 'its condition is false' }
    values = resolveValue(node.with, { nodes: outputs }) as Record<string, unknown>
  } catch (error) {
    // As a worker ends it, such as for the output of a step that was skipped.
    if (!(error instanceof CelError || error instanceof ValueError)) throw error
    return { ends: 'failed', says: `expression_error: ${error.message}` }
  }
  if (node.executor === 'noop') {
    outputs[node.node_id] = { outputs: takeOutputs(node, values.outputs ?? {}).outputs ?? {} }
    return { ends: 'succeeded', says: '' }
  }
  if (node.executor !== 'external')
    return { ends: 'failed', says: `the executor "${node.executor}" runs in the worker: try it with npm start` }
  return runWork(file, ground, node, values, outputs)
}

const runWork = async (
  file: AgentFile,
  ground: Ground,
  node: PlanNode,
  { job, inputs = {} }: Record<string, unknown>,
  outputs: Outputs,
): Promise<Ran> => {
  const work = { job: String(job), inputs: inputs as Record<string, unknown> }
  const attempt = ground.attempt(node.node_id, work, { run_s: node.timeouts.run_s ?? RUN_S })
  await carryOut(file, attempt.work, new AbortController().signal, () => {})
  const end = endOf(attempt)
  if (end?.phase !== 'succeeded')
    return {
      ends: 'failed',
      says: `${end?.error?.class ?? 'unknown'}: ${end?.error?.message ?? ''}`,
      log: [...attempt.lines.values()].filter((text) => text.trim() !== '').slice(-LAST_LINES),
    }
  const { outputs: taken, error } = takeOutputs(node, end.outputs ?? {})
  if (error) return { ends: 'failed', says: error.message }
  outputs[node.node_id] = { outputs: taken ?? {} }
  const { counts } = (taken?.preview ?? {}) as { counts?: Record<string, number> }
  const shown = Object.entries(counts ?? {}).filter(([, count]) => count > 0)
  return { ends: 'succeeded', says: shown.map(([action, count]) => `${count} to ${action}`).join(', ') }
}
