import type { Graph, PatchChange } from '../api/types.ts'

/** Ready-made choices for a patch: each becomes one or more changes, which can be edited before they are proposed. */
export type Choice = keyof typeof NEEDS

/** The fields that each choice needs. */
export const NEEDS = {
  insert_before: ['node'],
  change_inputs: ['node'],
  remove_step: ['node'],
  add_gate: ['node'],
  remove_gate: ['gate'],
  add_dependency: ['node', 'other'],
  remove_dependency: ['node', 'other'],
  set_limits: ['limit'],
} satisfies Record<string, ('node' | 'other' | 'gate' | 'limit')[]>
export const CHOICES = Object.keys(NEEDS) as Choice[]

export type Given = { node: string; other: string; gate: string; limit: number }
/** The texts of a draft. */
export type Words = { insert_name: (name: string) => string; question: (name: string) => string }

/** The changes of a choice on the current graph. Pure: the server judges whether they are sound. */
export const draftOf = (choice: Choice, given: Given, graph: Graph, inputs: unknown, words: Words): PatchChange[] => {
  const { node: node_id, other: depends_on, gate: gate_id, limit } = given
  const node = graph.nodes.find((one) => one.node_id === node_id)
  const name = node?.name ?? node_id
  switch (choice) {
    case 'insert_before': {
      const id = freeId(`before.${node_id}`, graph)
      const step = {
        node_id: id,
        name: words.insert_name(name),
        kind: 'task' as const,
        executor: 'noop',
        with: {},
        depends_on: node?.depends_on ?? [],
        idempotent: true,
      }
      return [
        { op: 'add_node', node: step },
        { op: 'add_dependency', node_id, depends_on: id },
      ]
    }
    case 'change_inputs':
      return [{ op: 'update_node', node_id, set: { with: inputs ?? {} } }]
    case 'remove_step':
      return [...closeGap(node_id, graph), { op: 'remove_node', node_id }]
    case 'add_gate': {
      const policy = { approvals: { quorum: 1, groups: [], four_eyes: true }, deadline_s: 86_400 }
      const gate = { gate_id: freeGate('ask', graph), question: words.question(name), policy, guards: [node_id] }
      return [{ op: 'add_gate', gate }]
    }
    case 'remove_gate':
      return [{ op: 'remove_gate', gate_id }]
    case 'add_dependency':
    case 'remove_dependency':
      return [{ op: choice, node_id, depends_on }]
    case 'set_limits':
      return [{ op: 'set_limits', max_parallel: limit }]
  }
}

/** Makes the node's dependents depend on its dependencies. */
const closeGap = (node_id: string, { nodes }: Graph): PatchChange[] => {
  const before = nodes.find((node) => node.node_id === node_id)?.depends_on ?? []
  return nodes
    .filter((node) => node.depends_on.includes(node_id))
    .flatMap((dependent): PatchChange[] => [
      { op: 'remove_dependency', node_id: dependent.node_id, depends_on: node_id },
      ...before
        .filter((id) => !dependent.depends_on.includes(id))
        .map((id): PatchChange => ({ op: 'add_dependency', node_id: dependent.node_id, depends_on: id })),
    ])
}

const LONGEST_ID = 90

const freeId = (wanted: string, { nodes }: Graph): string => {
  const taken = new Set(nodes.map(({ node_id }) => node_id))
  return free(wanted.slice(0, LONGEST_ID), taken)
}
const freeGate = (wanted: string, { gates }: Graph): string =>
  free(wanted, new Set(gates.map(({ gate_id }) => gate_id)))

const free = (wanted: string, taken: ReadonlySet<string>): string => {
  for (let n = 1; ; n += 1) {
    const id = n === 1 ? wanted : `${wanted}-${n}`
    if (!taken.has(id)) return id
  }
}

/** A typed change, or why it is not valid yet. */
export const readDraft = (text: string): { change: PatchChange } | { fault: string } => {
  try {
    const change: unknown = JSON.parse(text)
    const isChange =
      typeof change === 'object' && change !== null && typeof (change as { op?: unknown }).op === 'string'
    return isChange ? { change: change as PatchChange } : { fault: '' }
  } catch (error) {
    return { fault: (error as Error).message }
  }
}

type Violation = { pointer: string; code: string; message: string }

/** Violations by the change that causes them, found by pointer or by the named node or gate; the rest separately. */
export const placeViolations = (
  violations: readonly Violation[],
  changes: readonly PatchChange[],
): { at: Map<number, Violation[]>; rest: Violation[] } => {
  const at = new Map<number, Violation[]>()
  const rest: Violation[] = []
  for (const violation of violations) {
    const [, part = '', key = ''] = violation.pointer.split('/')
    const id = key.replaceAll('~1', '/').replaceAll('~0', '~')
    const index =
      part === 'changes'
        ? Number(key)
        : changes.findLastIndex((change) => (part === 'gates' ? gateOf(change) : nodeOf(change)) === id)
    if (!Number.isInteger(index) || index < 0 || index >= changes.length) rest.push(violation)
    else at.set(index, [...(at.get(index) ?? []), violation])
  }
  return { at, rest }
}

const nodeOf = (change: PatchChange): string | undefined =>
  change.op === 'add_node' ? change.node?.node_id : 'node_id' in change ? change.node_id : undefined
const gateOf = (change: PatchChange): string | undefined =>
  change.op === 'add_gate' ? change.gate?.gate_id : 'gate_id' in change ? change.gate_id : undefined
