import { graph } from './en/graph.ts'
import { logs, node, nodes } from './en/node.ts'
import { operation, operations } from './en/operation.ts'
import { activity, event_nouns, events, timeline } from './en/timeline.ts'

/** Words of operations: their list, and one of them in every view. */
export const tOperation = { operations, operation, graph, nodes, node, logs, timeline, activity, event_nouns, events }
