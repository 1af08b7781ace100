import type { PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { isTime } from '../../shared/data/formats.ts'
import { schemaFault } from '../../shared/data/json-schema.ts'
import { isObject } from '../../shared/data/pointer.ts'
import type { Violation } from '../../shared/errors.ts'
import { CelError, type CelProgram, compileCondition } from '../../shared/expressions/cel.ts'
import { mayOutput } from '../../shared/expressions/outputs.ts'
import { formsOf, type Reference, ValueError } from '../../shared/expressions/values.ts'
import { chainsOf } from './conditions.ts'
import { EXECUTORS, type ProgramRules, programFault, SECRET } from './executors.ts'
import { ranksOf } from './graph.ts'

export type SoundnessLimits = {
  nodes: number
  edges: number
  programs?: ProgramRules | undefined
  /** Whether the executors' policy names the pool, and how its agents get work. */
  hasPool?: ((pool: string) => boolean) | undefined
}

/**
 * Yields what makes a graph impossible to run (operations.md 2.6): each violation has a code and a place. Linear in
 * nodes and edges, except for references that reach far back. `known` says which targets exist.
 */
export const checkSoundness = (
  nodes: PlanNode[],
  gates: PlanGate[],
  limits: SoundnessLimits,
  known: (target_id: string) => boolean,
): Violation[] => {
  const edges = nodes.reduce((sum, node) => sum + node.depends_on.length, 0)
  if (nodes.length > limits.nodes) return [tooLarge(nodes.length, 'nodes', limits.nodes, 'NODES')]
  if (edges > limits.edges) return [tooLarge(edges, 'dependencies', limits.edges, 'EDGES')]
  const byId = new Map<string, PlanNode>()
  const violations: Violation[] = []
  for (const node of nodes) {
    if (byId.has(node.node_id)) violations.push(fault(node.node_id, 'duplicate_node', 'another node has this id'))
    byId.set(node.node_id, node)
  }
  const ranks = ranksOf(nodes)
  const walk = { byId, ranks, cyclic: cyclicOf(nodes, byId, ranks) }
  for (const node of nodes) {
    violations.push(...checkLinks(node, walk), ...checkRun(node, limits, byId), ...checkReferences(node, walk))
    if (node.target_id !== undefined && !known(node.target_id))
      violations.push(
        fault(`${node.node_id}/target_id`, 'target_unresolved', `there is no resource "${node.target_id}"`),
      )
  }
  return [...violations, ...checkGates(gates, byId)]
}

/** An intent cannot be split as a request can: fewer targets, or more room. */
const tooLarge = (has: number, things: string, most: number, name: string): Violation => {
  const advice = `select fewer targets (limit, when), or raise OPERATIONS__LIMITS__PLAN_${name}`
  return fault('', 'too_large', `has ${has} ${things}, and a plan at most ${most}: ${advice}`)
}

type Walk = { byId: Map<string, PlanNode>; ranks: Map<string, number>; cyclic: Set<string> }

const fault = (at: string, code: string, message: string): Violation => ({
  pointer: at === '' ? '/nodes' : `/nodes/${at}`,
  code,
  message,
})

function* checkLinks(node: PlanNode, { byId, cyclic }: Walk): Generator<Violation> {
  const at = node.node_id
  for (const [i, id] of node.depends_on.entries())
    if (!byId.has(id))
      yield fault(`${at}/depends_on/${i}`, 'unreachable_node', `depends on "${id}", which does not exist`)
  if (cyclic.has(at)) yield fault(`${at}/depends_on`, 'cycle', 'is part of a dependency cycle')
  if (node.join === 'any' && node.depends_on.length === 0)
    yield fault(`${at}/join`, 'unsatisfiable_join', 'join any needs at least one dependency')
}

/** Nodes without a rank, except those that only wait for a cycle or for a missing node. */
const cyclicOf = (nodes: PlanNode[], byId: Map<string, PlanNode>, ranks: Map<string, number>): Set<string> => {
  const left = new Set(nodes.filter((node) => !ranks.has(node.node_id)).map((node) => node.node_id))
  const dependents = new Map([...left].map((id) => [id, 0]))
  const before = (id: string) => [...new Set(byId.get(id)?.depends_on ?? [])].filter((other) => left.has(other))
  for (const id of left) for (const other of before(id)) dependents.set(other, (dependents.get(other) ?? 0) + 1)
  const queue = [...left].filter((id) => dependents.get(id) === 0)
  for (const id of queue) {
    const freed = before(id)
    left.delete(id)
    for (const other of freed) {
      const count = (dependents.get(other) ?? 0) - 1
      dependents.set(other, count)
      if (count === 0) queue.push(other)
    }
  }
  return new Set([...left].filter((id) => before(id).length > 0))
}

function* checkRun(
  node: PlanNode,
  { programs, hasPool = () => true }: SoundnessLimits,
  byId: Walk['byId'],
): Generator<Violation> {
  if (node.kind === 'wait') yield* checkWait(node)
  if (node.kind !== 'task') return
  yield* checkExecutor(node.node_id, node.executor, node.with, programs)
  yield* checkPreview(node.node_id, node.executor, node.with, byId)
  const { pool = 'default' } = node
  const executors = [node.executor, node.compensate?.executor]
  if (executors.includes('external') && !hasPool(pool))
    yield fault(`${node.node_id}/pool`, 'inputs_invalid', `there is no pool "${pool}" with agents`)
  const longest = EXECUTORS.get(node.executor)?.max_run_s
  if (longest !== undefined && node.timeouts.run_s > longest)
    yield fault(
      `${node.node_id}/timeouts/run_s`,
      'inputs_invalid',
      `"${node.executor}" may run for at most ${longest} s`,
    )
  const watched = node.executor === 'watch' && isObject(node.with) ? node.with.for_s : undefined
  if (typeof watched === 'number' && watched > node.timeouts.run_s)
    yield fault(
      `${node.node_id}/with/for_s`,
      'inputs_invalid',
      `is longer than timeouts.run_s (${node.timeouts.run_s} s)`,
    )
  const wrong = node.outputs_schema && schemaFault(node.outputs_schema)
  if (wrong !== undefined) yield fault(`${node.node_id}/outputs_schema`, 'inputs_invalid', wrong)
  if (!node.compensate) return
  const { executor, with: values } = node.compensate
  yield* checkExecutor(`${node.node_id}/compensate`, executor, values, programs)
  yield* checkPreview(`${node.node_id}/compensate`, executor, values, byId)
}

/** Only an agent forecasts a change: another executor could return a picture that the author of the plan drew. */
function* checkPreview(at: string, executor: string, values: unknown, byId: Walk['byId']): Generator<Violation> {
  const inputs = executor === 'external' && isObject(values) ? values.inputs : undefined
  const preview = isObject(inputs) ? inputs.preview : undefined
  const from = isObject(preview) ? preview.$from : undefined
  const id = typeof from === 'string' ? (from.split('/')[1] ?? '') : ''
  const maker = byId.get(id)
  if (maker && maker.executor !== 'external')
    yield fault(
      `${at}/with/inputs/preview`,
      'inputs_invalid',
      `must be an output of a node with the executor "external", and "${id}" has "${maker.executor}"`,
    )
}

/** The longest name that a signal can have. */
const MAX_SIGNAL = 200
const MAX_WAIT_S = 2_592_000

function* checkWait(node: PlanNode): Generator<Violation> {
  const given = isObject(node.with) ? node.with : {}
  const ways = ['duration_s', 'until', 'signal'].filter((way) => given[way] !== undefined)
  const at = `${node.node_id}/with`
  if (ways.length !== 1) yield fault(at, 'inputs_invalid', 'a wait needs exactly one of duration_s, until and signal')
  const { duration_s, until, signal } = given
  if (signal !== undefined && !(typeof signal === 'string' && signal.length >= 1 && signal.length <= MAX_SIGNAL))
    yield fault(`${at}/signal`, 'inputs_invalid', `must be a name of 1 to ${MAX_SIGNAL} characters`)
  if (duration_s !== undefined && !(typeof duration_s === 'number' && duration_s >= 0 && duration_s <= MAX_WAIT_S))
    yield fault(`${at}/duration_s`, 'inputs_invalid', 'must be a number of seconds up to 30 days')
  if (until !== undefined && !(typeof until === 'string' && isTime(until)))
    yield fault(`${at}/until`, 'inputs_invalid', 'must be a valid time (RFC 3339)')
}

function* checkExecutor(
  at: string,
  name: string,
  values: unknown,
  programs: ProgramRules | undefined,
): Generator<Violation> {
  const executor = EXECUTORS.get(name)
  if (!executor) yield fault(`${at}/executor`, 'unknown_executor', `there is no executor "${name}"`)
  else if (!isObject(values)) yield fault(`${at}/with`, 'inputs_invalid', 'must be an object')
  else {
    for (const { pointer, message } of executor.check(values))
      yield fault(`${at}/with${pointer}`, 'inputs_invalid', message)
    const refused = programs && programFault(name, values, programs)
    if (refused)
      yield fault(
        `${at}/with${refused.pointer}`,
        refused.pointer === '/program' ? 'unknown_executor' : 'inputs_invalid',
        refused.message,
      )
  }
}

function* checkReferences(node: PlanNode, walk: Walk): Generator<Violation> {
  const parts: [string, unknown, boolean][] = [
    ['/with', node.with, false],
    ['/secrets', node.secrets, false],
    ['/catalog', node.catalog, true],
    ['/compensate/with', node.compensate?.with, true],
    ['/compensate/catalog', node.compensate?.catalog, true],
  ]
  for (const [at, value, own] of parts) {
    if (value === undefined) continue
    let found: ReturnType<typeof formsOf>
    try {
      found = formsOf(value, at)
    } catch (error) {
      if (!(error instanceof ValueError)) throw error
      yield fault(`${node.node_id}${error.pointer}`, 'inputs_invalid', error.message)
      continue
    }
    for (const reference of found.references) {
      const message = refuseReference(node, reference, own, walk)
      if (message) yield fault(`${node.node_id}${reference.at}`, 'unknown_reference', message)
    }
    for (const { text, at: place } of found.secrets)
      if (!Object.hasOwn(node.secrets ?? {}, text))
        yield fault(`${node.node_id}${place}`, 'unknown_reference', `the node has no secret "${text}"`)
  }
  for (const [name, value] of Object.entries(node.secrets ?? {}))
    if (typeof value === 'string' && !SECRET.test(value))
      yield fault(`${node.node_id}/secrets/${name}`, 'inputs_invalid', 'must look like secret://provider/name#version')
  yield* checkCondition(node, '/when', node.when, false, walk)
  yield* checkCondition(node, '/compensate/when', node.compensate?.when, true, walk)
}

/** A condition must run after the nodes that it names; one that does not compile was reported when it was filled in. */
function* checkCondition(
  node: PlanNode,
  at: string,
  source: string | undefined,
  own: boolean,
  walk: Walk,
): Generator<Violation> {
  if (source === undefined) return
  let ast: CelProgram['ast']
  try {
    ast = compileCondition(source, ['nodes']).ast
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    yield fault(`${node.node_id}${at}`, 'expression_error', error.message)
    return
  }
  for (const { path } of chainsOf(ast)) {
    const [id, word, name] = path
    const source_node = id === undefined ? undefined : walk.byId.get(id)
    const place = `${node.node_id}${at}`
    if (id === undefined) yield fault(place, 'unknown_reference', 'must name each node, as nodes["<node_id>"].outputs')
    else if (!(own && id === node.node_id) && !(source_node && isAncestor(id, node, walk)))
      yield fault(place, 'unknown_reference', `"${id}" is not a node that comes before "${node.node_id}"`)
    else if (word === 'outputs' && name !== undefined && source_node && !mayOutput(source_node, name))
      yield fault(place, 'unknown_reference', `"${id}" declares no output "${name}"`)
  }
}

const refuseReference = (node: PlanNode, { root, pointer, text }: Reference, own: boolean, walk: Walk) => {
  const [id = '', word, name = ''] = pointer.slice(1).split('/')
  if (root !== 'nodes' || word !== 'outputs') return `"${text}" is not nodes/<node_id>/outputs/…`
  const source = walk.byId.get(id)
  const earlier = own && id === node.node_id ? true : source !== undefined && isAncestor(id, node, walk)
  if (!earlier) return `"${id}" is not a node that comes before "${node.node_id}"`
  if (name !== '' && !Object.hasOwn(source?.outputs ?? {}, name)) return `"${id}" declares no output "${name}"`
  return undefined
}

/** Only nodes of a lower rank can come before, so the search stops at the rank of the one it looks for. */
const isAncestor = (id: string, node: PlanNode, { byId, ranks }: Walk): boolean => {
  const lowest = ranks.get(id) ?? 0
  const seen = new Set<string>()
  const queue = [...node.depends_on]
  for (const before of queue) {
    if (before === id) return true
    if (seen.has(before) || (ranks.get(before) ?? 0) <= lowest) continue
    seen.add(before)
    queue.push(...(byId.get(before)?.depends_on ?? []))
  }
  return false
}

function* checkGates(gates: PlanGate[], byId: Map<string, PlanNode>): Generator<Violation> {
  const seen = new Set<string>()
  for (const [i, gate] of gates.entries()) {
    const at = `/gates/${i}`
    if (seen.has(gate.gate_id))
      yield { pointer: `${at}/gate_id`, code: 'duplicate_gate', message: 'another gate has this id' }
    seen.add(gate.gate_id)
    if (gate.guards.length === 0) yield { pointer: `${at}/guards`, code: 'unreachable_node', message: 'guards nothing' }
    for (const id of gate.guards)
      if (!byId.has(id)) yield { pointer: `${at}/guards`, code: 'unknown_node', message: `there is no node "${id}"` }
  }
}
