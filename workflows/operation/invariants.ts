import type { Effect } from './state/events.ts'
import { at as item } from './state/graph.ts'
import type { State } from './state/types.ts'

/**
 * Returns which invariant is broken, whatever happened before. It runs after each step, and its cost depends only on
 * the step's effects (operations.md 8). The rows would refuse such a claim as well. Here it means that the state itself
 * is wrong, so none of the step is carried out.
 */
export const brokenInvariant = (s: State, effects: readonly Effect[]): string | undefined => {
  if (s.in_flight < 0 || s.running < 0 || s.unsettled < 0 || s.activities < 0) return 'a counter is below zero'
  let counted = 0
  for (const count of Object.values(s.counts)) counted += count
  if (counted !== s.nodes.length) return `${counted} nodes are counted, ${s.nodes.length} are there`
  for (const effect of effects) {
    if (effect.type !== 'run') continue
    const { node, role, slice, node_id, attempt } = effect
    const run = item(s.nodes, node)
    const [last, state] = role === 'run' ? [run.attempt, 'running'] : [run.undo_attempt, 'compensating']
    if (run.state !== state || run.doing !== 'attempt' || last !== attempt) return `${node_id} is out twice`
    if (role === 'run' && slice === 0 && s.control !== 'run') return `${node_id} starts while ${s.control} is wanted`
    if (role === 'run' && slice === 0 && run.closed_gates > 0) return `${node_id} starts before its gates are passed`
  }
  return undefined
}
