import { defineSearchAttributeKey } from '@temporalio/common'
import { upsertSearchAttributes } from '@temporalio/workflow'
import { inMarkdown } from '../../apps/shared/contracts/engine/texts.ts'
import type { OperationInput, SEARCH_ATTRIBUTES } from './messages.ts'
import { statusOf } from './rules/facts.ts'
import type { Change, Effect, Report } from './state/events.ts'
import type { State } from './state/types.ts'

/** Returns the answer of the query `state`, for the Temporal UI. */
export const stateView = (s: State) => ({
  status: statusOf(s.control, s.reported?.engine_status ?? 'queued'),
  control: s.control,
  cancel_mode: s.mode,
  stage: s.stage,
  counts: Object.fromEntries(Object.entries(s.counts).filter(([, count]) => count > 0)),
  in_flight: s.nodes.flatMap((node, i) =>
    node.doing === 'idle'
      ? []
      : [{ node_id: s.graph.ids[i], state: node.state, doing: node.doing, attempt: node.attempt }],
  ),
  gates: s.gates.map(({ gate_id, status, round }) => ({ gate_id, status, round })),
  blocked_on: s.reported?.blocked_on ?? [],
  last_seq: s.last_seq,
  record_seq: s.record_seq,
  plan_revision: s.plan_revision,
})

/** Returns the answer of the query `node`. */
export const nodeView = (s: State, node_id: string) => {
  const i = s.graph.index.get(node_id)
  if (i === undefined) return { not_found: node_id }
  const names = (positions: readonly number[] | undefined) => (positions ?? []).map((position) => s.graph.ids[position])
  return {
    node_id,
    name: s.graph.names[i],
    ...s.nodes[i],
    depends_on: names(s.graph.deps[i]),
    gates: (s.graph.gates_of[i] ?? []).map((g) => s.gates[g]?.gate_id),
    profile: s.graph.profiles[i],
  }
}

const GATE_WORDS = { gate_open: 'opens', gate_expire: 'its time is over', gate_escalate: 'asks more people' }
const LAST_EVENTS = 10
const key = <K extends keyof typeof SEARCH_ATTRIBUTES>(name: K) => name
const OP_STATUS = defineSearchAttributeKey(key('OpStatus'), 'KEYWORD')
const WAITING_GATES = defineSearchAttributeKey(key('WaitingGates'), 'KEYWORD_LIST')
const FAILED_NODES = defineSearchAttributeKey(key('FailedNodes'), 'INT')

/**
 * An engineer's view of the workflow: search attributes, written only if the operation as a whole has changed, and the
 * current details as markdown. With `at_rest` a change is written only after its record has returned: a burst of
 * decisions moves gates many times a second, and each write costs the engine as much as a signal.
 */
export const createFace = ({ operation_id, title, plan_id, search_attributes }: OperationInput, at_rest: boolean) => {
  let shown = ''
  let next: { status: string; waiting: string[]; failed: number } | undefined
  const last: string[] = []
  let details = `**${inMarkdown(title)}** is being loaded`
  return (s: State, effects: readonly Effect[]): string => {
    const batch = effects.find((effect) => effect.type === 'record')?.batch
    if (batch || s.end !== null) {
      for (const change of batch?.changes ?? []) last.push(lineOf(change))
      last.splice(0, last.length - LAST_EVENTS)
      const status = s.end?.status ?? statusOf(s.control, s.reported?.engine_status ?? 'queued')
      const waiting = s.gates.filter((gate) => gate.status === 'waiting').map(({ gate_id }) => gate_id)
      next = { status, waiting, failed: s.reported?.failed ?? 0 }
      details = markdown({ operation_id, title, plan_id, status, report: s.reported, waiting, last })
    }
    if (!next || (at_rest && s.recording)) return details
    const now = JSON.stringify(next)
    if (search_attributes && now !== shown)
      upsertSearchAttributes([
        { key: OP_STATUS, value: next.status },
        { key: WAITING_GATES, value: fitting(next.waiting) },
        { key: FAILED_NODES, value: next.failed },
      ])
    shown = now
    next = undefined
    return details
  }
}

/** The server ends a workflow for good if a search attribute has more than 2,048 bytes. */
const MOST_BYTES = 2000

/** Returns the first gates whose ids, which are ASCII, fit into one search attribute. */
const fitting = (gate_ids: readonly string[]): string[] => {
  const shown: string[] = []
  let bytes = 2
  for (const gate_id of gate_ids) {
    bytes += gate_id.length + 3
    if (bytes > MOST_BYTES) break
    shown.push(gate_id)
  }
  return shown
}

type Details = {
  operation_id: string
  title: string
  plan_id: string
  status: string
  report: Report | null
  waiting: readonly string[]
  last: readonly string[]
}

const markdown = ({ operation_id, title, plan_id, status, report, waiting, last }: Details): string =>
  [
    `**${inMarkdown(title)}** is **${status}**${report ? `: ${report.done} of ${report.total} nodes done, ${report.running} running, ${report.failed} failed` : ''}`,
    `operation \`${operation_id}\`, plan \`${plan_id}\``,
    ...(waiting.length > 0 ? [`Waiting gates: ${waiting.map((gate) => `\`${gate}\``).join(', ')}`] : []),
    ...(report?.blocked_on ?? []).slice(0, LAST_EVENTS).map(({ kind, message }) => `- ${kind}: ${inMarkdown(message)}`),
    ...(last.length > 0 ? ['', 'Last:', ...last.map((line) => `- ${line}`)] : []),
  ].join('\n')

const lineOf = (change: Change): string => {
  switch (change.t) {
    case 'node':
      return `${new Date(change.at).toISOString()} node \`${change.id}\` ${change.state}${change.error ? `: ${inMarkdown(change.error.message.slice(0, 100))}` : ''}`
    case 'catalog':
      return `node \`${change.id}\`: catalog ${change.role ? 'undo ' : ''}${change.status}`
    case 'when':
      return `node \`${change.id}\`: condition`
    case 'gate_open':
    case 'gate_expire':
    case 'gate_escalate':
      return `gate \`${change.gate_id}\` round ${change.round}: ${GATE_WORDS[change.t]}`
    case 'control':
      return `${change.to} (${change.reason})`
    case 'command':
      return `command \`${change.command_id}\` ${change.status}${change.code ? ` (${change.code})` : ''}`
    case 'deadline':
      return `deadline ${new Date(change.deadline_at).toISOString()}`
    case 'leases':
      return `leases: ${change.to}`
  }
}
