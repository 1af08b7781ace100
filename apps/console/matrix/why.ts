import type { Graph, GraphNode } from '../api/types.ts'
import type { GraphStates } from '../graph/states.ts'

export type Link = { node: GraphNode } | { gate: Graph['gates'][number] }

const DONE: ReadonlySet<string> = new Set(['succeeded', 'succeeded_with_exceptions', 'skipped', 'cancelled', 'undone'])
const PASSED: ReadonlySet<string> = new Set(['approved', 'bypassed'])

/**
 * Why a node has not begun: the node that it waits for, the one that this waits for, and so on, to the node or gate
 * that holds them all. Of several unfinished dependencies, it follows the one that needs a person most. Pure.
 */
export const whyOf = (graph: Graph, states: GraphStates, node_id: string): Link[] => {
  const chain: Link[] = []
  const seen = new Set<string>()
  for (let id: string | undefined = node_id; id !== undefined && !seen.has(id); ) {
    seen.add(id)
    const node = states.node(id)
    if (node === undefined || !['pending', 'gated', 'ready'].includes(node.state)) break
    const next: GraphNode | undefined = node.depends_on
      .flatMap((before) => states.node(before) ?? [])
      .filter((before) => !DONE.has(states.look(before).word))
      .sort((a, b) => states.look(a).rank - states.look(b).rank)[0]
    if (next === undefined) {
      const gate = graph.gates.find(({ gate_id, state }) => node.gates.includes(gate_id) && !PASSED.has(state))
      if (gate) chain.push({ gate })
    } else chain.push({ node: next })
    id = next?.node_id
  }
  return chain
}

const ignoringCase = (word: string): RegExp => new RegExp(word.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i')

/** Those of the nodes whose name, host, id or status contain all these words. Pure. */
export const found = (nodes: GraphNode[], words: (node: GraphNode) => string, text: string): GraphNode[] => {
  // Thousands of nodes are searched, so no text is made of them.
  const wanted = text.split(/\s+/).filter(Boolean).map(ignoringCase)
  if (wanted.length === 0) return []
  return nodes.filter((node) =>
    wanted.every(
      (word) =>
        word.test(node.name) || word.test(node.node_id) || word.test(node.target_id ?? '') || word.test(words(node)),
    ),
  )
}
