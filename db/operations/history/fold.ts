import { GATE_STATUSES, NODE_STATES, OPERATION_ENDS } from '../../../apps/shared/contracts/operations/graph.ts'

/** The state of one operation derived from its events alone, which its read models must show (operations.md 6.1). */
export type Folded = {
  /** How it ended; null until then. */
  ended: string | null
  /** Last known states. A reset node is unknown until its next event. */
  nodes: Map<string, string>
  gates: Map<string, string>
  patches: Map<string, string>
}
export type FoldedEvent = Record<'node_id' | 'gate_id' | 'patch_id', string | null> & { type: string }

const NODES: ReadonlySet<string> = new Set(NODE_STATES)
const GATES: ReadonlySet<string> = new Set(GATE_STATUSES)
const ENDS: ReadonlySet<string> = new Set(OPERATION_ENDS)
const PATCHES: ReadonlySet<string> = new Set([
  'awaiting_approval',
  'approved',
  'applied',
  'rejected',
  'not_applicable',
  'expired',
  'withdrawn',
])

export const foldEvents = (events: readonly FoldedEvent[]): Folded => {
  const folded: Folded = { ended: null, nodes: new Map(), gates: new Map(), patches: new Map() }
  for (const { type, node_id, gate_id, patch_id } of events) {
    const [noun, word = ''] = type.split('.')
    if (noun === 'operation' && ENDS.has(word)) folded.ended = word
    else if (noun === 'node' && node_id !== null) {
      if (word === 'reset') folded.nodes.delete(node_id)
      else if (NODES.has(word)) folded.nodes.set(node_id, word)
    } else if (noun === 'gate' && gate_id !== null) {
      if (word === 'reopened') folded.gates.set(gate_id, 'waiting')
      else if (GATES.has(word)) folded.gates.set(gate_id, word)
    } else if (noun === 'patch' && patch_id !== null && PATCHES.has(word)) folded.patches.set(patch_id, word)
  }
  return folded
}
