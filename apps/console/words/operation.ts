import { graph } from './operations/graph.ts'
import { compare, logs, node, nodes } from './operations/node.ts'
import { operation, operations } from './operations/operation.ts'
import { activity, event_nouns, events, timeline } from './operations/timeline.ts'

/** Texts for operations: their list, and every view of one. */
export const tOperation = {
  operations,
  operation,
  graph,
  nodes,
  node,
  logs,
  compare,
  timeline,
  activity,
  event_nouns,
  events,
}
