import type { Graph, GraphNode } from '../api/types.ts'
import type { GraphStates } from '../graph/states.ts'

export type Link = { node: GraphNode } | { gate: Graph['gates'][number] }

const DONE: ReadonlySet<string> = new Set(['succeeded', 'succeeded_with_exceptions', 'skipped', 'cancelled', 'undone'])
const PASSED_OVER: ReadonlySet<string> = new Set(['tolerate', 'skip_dependents'])
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
      .filter((before) => !DONE.has(states.look(before).word) && !isPassedOver(before))
      .sort((a, b) => states.look(a).rank - states.look(b).rank)[0]
    if (next === undefined) {
      const gate = graph.gates.find(({ gate_id, state }) => node.gates.includes(gate_id) && !PASSED.has(state))
      if (gate) chain.push({ gate })
    } else chain.push({ node: next })
    id = next?.node_id
  }
  return chain
}

/** A failure that the plan passes over: no person has to mend it first. */
const isPassedOver = ({ state, exception }: GraphNode): boolean =>
  state === 'failed' && PASSED_OVER.has(exception ?? '')

const textOf = ({ node_id, name, target_id }: GraphNode): string =>
  `${name}\n${node_id}\n${target_id ?? ''}`.toLowerCase()

/**
 * Searches the nodes of a plan for all words of a text, in their names, hosts, ids, statuses or errors. Their texts are made
 * once, with the first search: there may be thousands, and a search follows each letter. Pure.
 */
export const searchOf = (planned: GraphNode[], status: (node_id: string) => string) => {
  let texts: string[] | undefined
  return (text: string) => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
    const has = (own: string, node_id: string) =>
      wanted.every((word) => own.includes(word) || status(node_id).toLowerCase().includes(word))
    return {
      matches: (node: GraphNode) => has(textOf(node), node.node_id),
      all: () => {
        texts ??= planned.map(textOf)
        const known = texts
        return wanted.length === 0 ? [] : planned.filter(({ node_id }, at) => has(known[at] ?? '', node_id))
      },
    }
  }
}
