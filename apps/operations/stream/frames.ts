import type { Db } from '../../../db/client.ts'
import {
  type ChangedResource,
  type Keyed,
  type LiveGate,
  type LiveNode,
  type LivePatch,
  type LoggedChange,
  listCommandOwners,
  listLiveGates,
  listLiveNodes,
  listLivePatches,
} from '../../../db/operations/history/tail.ts'
import { type LiveSummary, listSummaries } from '../../../db/operations/operations/read.ts'
import type { Frame } from '../../shared/contracts/client/frames.ts'

/** One logged change with the rows that its frames show, read once for all streams. */
export type LiveChange = LoggedChange & {
  summary: LiveSummary | undefined
  frames: Frame[]
  /** Gates, patches and nodes that began or ceased to wait for a person: the content of the inbox. */
  inbox: { gate_id?: string; round?: number; patch_id?: string; node_id?: string; cause: string }[]
  /** Outcomes of commands, with who gave them: the content of the topic `me`. */
  outcomes: { owner: string | undefined; frame: Frame }[]
}

const keyOf = (operation_id: string, id: string) => `${operation_id}/${id}`

/** Reads the rows behind a batch of changes: one query per kind of object, however many streams listen. */
export const loadFrames = async (db: Db, changes: readonly LoggedChange[]): Promise<LiveChange[]> => {
  const operation_ids = [...new Set(changes.map(({ operation_id }) => operation_id))]
  const [summaries, nodes, gates, patches, owners] = await Promise.all([
    listSummaries(db, operation_ids),
    listLiveNodes(db, keysOf(changes, 'node_id')),
    listLiveGates(db, keysOf(changes, 'gate_id')),
    listLivePatches(db, keysOf(changes, 'patch_id')),
    listCommandOwners(db, [...new Set(changes.flatMap(({ events }) => events.flatMap(commandOf)))]),
  ])
  const rows = {
    summaries: new Map(summaries.map((row) => [row.fields.operation_id, row])),
    nodes: new Map(nodes.map((row) => [keyOf(row.operation_id, row.node_id), row])),
    gates: new Map(gates.map((row) => [keyOf(row.operation_id, row.gate_id), row])),
    patches: new Map(patches.map((row) => [keyOf(row.operation_id, row.patch_id), row])),
  }
  return changes.map((change) => ({
    ...change,
    summary: rows.summaries.get(change.operation_id),
    frames: framesOf(change, rows),
    inbox: inboxOf(change, rows.gates),
    outcomes: change.events.flatMap((event) =>
      commandOf(event).map((id) => ({ owner: owners.get(id), frame: commandFrame(change.operation_id, event) })),
    ),
  }))
}

/** Returns the command whose outcome an event reports; none for a command that is only accepted. */
const commandOf = ({ type, command_id }: LoggedChange['events'][number]): string[] =>
  command_id && OUTCOMES[type] !== undefined ? [command_id] : []

const keysOf = (changes: readonly LoggedChange[], member: 'node_id' | 'gate_id' | 'patch_id'): Keyed[] => {
  const keys = new Map<string, Keyed>()
  for (const { operation_id, events } of changes)
    for (const event of events) {
      const id = event[member]
      if (id) keys.set(keyOf(operation_id, id), { operation_id, id })
    }
  return [...keys.values()]
}

type Rows = {
  summaries: Map<string, LiveSummary>
  nodes: Map<string, LiveNode>
  gates: Map<string, LiveGate>
  patches: Map<string, LivePatch>
}

const UNSENT: ReadonlySet<string> = new Set(['pending', 'ready'])

/** Returns one frame per object that a change touched, all with its change_seq; the operation itself comes last. */
const framesOf = ({ operation_id, change_seq, events }: LoggedChange, rows: Rows): Frame[] => {
  const frames: Frame[] = []
  const last = new Map(events.flatMap(({ node_id, type }) => (node_id ? [[node_id, type] as const] : [])))
  const seen = new Set<string>()
  for (const event of events) {
    if (commandOf(event).length > 0) frames.push(commandFrame(operation_id, event))
    const objects = [
      ['node', event.node_id, rows.nodes],
      ['gate', event.gate_id, rows.gates],
      ['patch', event.patch_id, rows.patches],
    ] as const
    for (const [kind, id, known] of objects) {
      if (!id || seen.has(`${kind} ${id}`)) continue
      seen.add(`${kind} ${id}`)
      const row = known.get(keyOf(operation_id, id))
      // The row of a node that was sent learns of it from the claim.
      const sent = last.get(id) === 'node.dispatched' && row && 'state' in row && UNSENT.has(row.state)
      const data = { ...row, ...(sent && { state: 'dispatched' }), change_seq }
      if (row) frames.push({ event: kind, data } as Frame)
    }
  }
  const summary = rows.summaries.get(operation_id)
  if (summary) frames.push({ event: 'operation', data: { ...summary.fields, change_seq } })
  return frames
}

/** The command events that are outcomes, and their names on the wire (operations.md 1.3). */
const OUTCOMES: Record<string, string> = {
  'command.applied': 'applied',
  'command.refused': 'refused',
  'command.expired': 'withdrawn',
  'command.superseded': 'withdrawn',
  'command.withdrawn': 'withdrawn',
}

const commandFrame = (operation_id: string, { type, command_id, data }: LoggedChange['events'][number]): Frame => ({
  event: 'command',
  data: { ...data, command_id: command_id ?? '', operation_id, status: OUTCOMES[type] ?? 'withdrawn' },
})

const INBOX_CAUSES = new Set([
  'waiting',
  'voted',
  'approved',
  'rejected',
  'expired',
  'bypassed',
  'cancelled',
  'reopened',
])

const OPERATION_CAUSES = new Set(['operation.drifted', 'operation.resumed', 'operation.ended'])

/** A node that fails, or is reset or skipped after failing, changes what waits besides gates. */
const NODE_CAUSES = new Set(['failed', 'outcome_unknown', 'compensation_failed', 'reset', 'skipped'])

const inboxOf = ({ operation_id, events }: LoggedChange, gates: Rows['gates']): LiveChange['inbox'] =>
  events.flatMap(({ type, gate_id, patch_id, node_id }): LiveChange['inbox'] => {
    const [noun, cause = ''] = type.split('.')
    // These begin or end a pause by drift; no failure holds an operation that has ended.
    if (OPERATION_CAUSES.has(type)) return [{ cause }]
    if (noun === 'patch' && patch_id) return [{ patch_id, cause }]
    if (noun === 'node' && node_id && NODE_CAUSES.has(cause)) return [{ node_id, cause }]
    if (noun !== 'gate' || !gate_id || !INBOX_CAUSES.has(cause)) return []
    return [{ gate_id, round: gates.get(keyOf(operation_id, gate_id))?.round ?? 1, cause }]
  })

export const resourceFrame = ({ fields }: ChangedResource): Frame => ({ event: 'resource', data: fields })
