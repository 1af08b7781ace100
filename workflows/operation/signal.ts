import { GATE_STATUSES, NODE_INTERVENTIONS } from '../../apps/shared/contracts/operations/graph.ts'
import type { CommandBodies, CommandMessage } from './messages.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Whether a signal has the form that the relay gives to all: the Temporal UI lets anyone send anything under this name,
 * and a message that the workflow cannot read would stop it for good.
 */
export const isCommand = (sent: unknown): sent is CommandMessage => {
  if (!isRecord(sent)) return false
  const { command_id, seq, kind, not_after, trace, body } = sent
  return (
    isText(command_id) &&
    UUID.test(command_id) &&
    isCount(seq) &&
    isText(kind) &&
    (not_after === null || isTime(not_after)) &&
    (trace == null || isText(trace)) &&
    isRecord(body)
  )
}

/** Whether this build knows the command; one that it does not is refused, because its row waits for an answer. */
export const isKnown = ({ v, kind, body }: CommandMessage): boolean =>
  v === 1 && Object.hasOwn(BODIES, kind) && hasForm(BODIES[kind] as Record<string, Check>)(body)

type Check = (value: unknown) => boolean
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isCount = (value: unknown): value is number => Number.isInteger(value) && Math.abs(value as number) < 2 ** 31
const isTime: Check = (value) => isText(value) && !Number.isNaN(Date.parse(value))
const isOneOf =
  (known: readonly string[]): Check =>
  (value) =>
    known.includes(value as string)
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const nullable =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const mapOf =
  (check: Check): Check =>
  (value) =>
    isRecord(value) && Object.values(value).every(check)
const hasForm =
  (form: Record<string, Check>): Check =>
  (value) =>
    isRecord(value) && Object.entries(form).every(([name, check]) => check(value[name]))

const isStatus = isOneOf(GATE_STATUSES)
const areTexts = listOf(isText)
const areGates = mapOf(hasForm({ status: isStatus, round: isCount, deadline_at: maybe(nullable(isTime)) }))
const areGenerations = mapOf(isCount)
const isPayload = hasForm({
  max_parallel: maybe(isCount),
  message: maybe(isText),
  add_s: maybe(isCount),
  attempt: maybe(isCount),
})

/** The members that the reducer reads. */
const BODIES: { [K in keyof CommandBodies]: { [M in keyof CommandBodies[K]]?: Check } } = {
  start: {},
  pause: { reason: maybe(isText) },
  resume: { gates: maybe(areGates), guarding: maybe(mapOf(areTexts)) },
  cancel: { mode: isOneOf(['graceful', 'compensate', 'force']) },
  gate_decided: { gate_id: isText, round: isCount, status: isStatus },
  retry_node: { node_id: isText, generations: areGenerations, gates: areGates, guarded_by: maybe(areTexts) },
  intervene: {
    type: isOneOf([...NODE_INTERVENTIONS, 'set_limits', 'extend_deadline', 'override_freeze']),
    node_id: nullable(isText),
    generation: maybe(isCount),
    generations: maybe(areGenerations),
    gates: maybe(areGates),
    guarded_by: maybe(areTexts),
    payload: maybe(isPayload),
  },
  node_result: {
    node_id: isText,
    role: maybe(isOneOf(['run', 'undo'])),
    attempt: isCount,
    status: isOneOf(['succeeded', 'failed', 'unknown', 'again']),
    class: maybe(isText),
    message: maybe(isText),
    retryable: maybe(isFlag),
  },
  node_signal: { name: isText },
  patch_proposed: { patch_id: isText, node_ids: areTexts },
  patch_closed: { patch_id: isText, plan_revision: maybe(isCount) },
  patch_applied: {
    patch_id: isText,
    plan_revision: isCount,
    generations: areGenerations,
    gates: areGates,
    closed: areTexts,
  },
  catalog_drift: {},
  lease_granted: {},
  calendar_changed: {},
  place_free: { node_ids: areTexts },
}
