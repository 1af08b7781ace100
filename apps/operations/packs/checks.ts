import { isObject, pointerOf, readPointer, tokensOf } from '../../shared/data/pointer.ts'
import { CelError, type CelProgram, compileCel, compileCondition } from '../../shared/expressions/cel.ts'
import { formsOf, PLAN_ROOTS, type Reference, ValueError } from '../../shared/expressions/values.ts'
import type { Fault } from '../../shared/steps/shape.ts'
import { chainsOf } from '../graph/conditions.ts'
import { EXECUTORS, SECRET } from '../graph/executors.ts'
import type { Procedure, Step } from '../graph/types.ts'
import type { PackRule } from './source.ts'

/** Members of a target that a reference may begin with. */
const TARGET_MEMBERS = new Set([
  'resource_id',
  'type_key',
  'type_version',
  'name',
  'parent_id',
  'version',
  'lifecycle_status',
  'health_status',
  'labels',
  'annotations',
  'scope',
  'ancestors',
  'desired_state',
  'observed_state',
])
const ID_RESERVED = new Set(['barrier'])

type Check = Generator<Fault & { rule?: PackRule }>

/** Returns everything in a procedure that could not work on any target (operations.md 4.4). */
export const checkProcedure = (procedure: Procedure, policies: ReadonlyMap<string, unknown>) => [
  ...under('match', checkMatch(procedure)),
  ...under('order', checkNeeds(procedure)),
  ...under('gate', checkGates(procedure, policies)),
  ...under('reference', checkSteps(procedure)),
  ...under('reference', checkRead(procedure)),
]

/** Yields the faults of a check under its rule; a fault that names its own rule keeps it. */
function* under(rule: PackRule, check: Check): Generator<Fault & { rule: PackRule }> {
  for (const fault of check) yield { rule, ...fault }
}

function* checkMatch({ kind, match, batch, order, scope }: Procedure): Check {
  const wrong = (pointer: string, message: string): Fault => ({ pointer: `/match${pointer}`, message })
  if (kind === 'change') {
    if (!match.resource_type) yield wrong('/resource_type', 'a change procedure must name the type it changes')
    if (!match.op) yield wrong('/op', 'a change procedure must name its op')
    if (match.action) yield wrong('/action', 'belongs to procedures of kind action')
  } else if (kind === 'action') {
    if (!match.resource_type) yield wrong('/resource_type', 'an action procedure must name the type it acts on')
    if (!match.action) yield wrong('/action', 'an action procedure must name its action')
    if (match.op) yield wrong('/op', 'belongs to procedures of kind change')
    if (match.paths) yield wrong('/paths', 'belongs to procedures of kind change')
  } else if (match.resource_type ?? match.op ?? match.action ?? match.paths) {
    yield wrong('', 'a runbook is chosen by its name and has no match')
  }
  if (scope === 'plan' && batch)
    yield { rule: 'scope', pointer: '/batch', message: 'a procedure that runs once per plan has no batches' }
  if (scope === 'plan' && order)
    yield { rule: 'scope', pointer: '/order', message: 'a procedure that runs once per plan has no order' }
}

function* checkNeeds({ steps }: Procedure): Check {
  const seen = new Set<string>()
  for (const [i, step] of steps.entries()) {
    const at = pointerOf('steps', i)
    if (seen.has(step.id))
      yield { rule: 'unique', pointer: `${at}/id`, message: `the step "${step.id}" is defined twice` }
    if (ID_RESERVED.has(step.id))
      yield { pointer: `${at}/id`, message: `"${step.id}" is reserved for the node that closes a batch` }
    seen.add(step.id)
  }
  for (const [i, step] of steps.entries())
    for (const [n, need] of step.needs.entries())
      if (!seen.has(need)) yield { pointer: pointerOf('steps', i, 'needs', n), message: `there is no step "${need}"` }
  for (const [i, step] of steps.entries())
    if (needsOf(steps, step.id).has(step.id))
      yield {
        pointer: pointerOf('steps', i, 'needs'),
        message: `the step "${step.id}" depends on itself through a cycle`,
      }
}

/** Returns all steps that come before a step. */
const needsOf = (steps: Step[], id: string): Set<string> => {
  const found = new Set<string>()
  const queue = [id]
  for (const at of queue)
    for (const need of steps.find((step) => step.id === at)?.needs ?? [])
      if (!found.has(need)) {
        found.add(need)
        queue.push(need)
      }
  return found
}

function* checkGates({ gates, steps, batch }: Procedure, policies: ReadonlyMap<string, unknown>): Check {
  for (const [i, gate] of gates.entries()) {
    const at = pointerOf('gates', i)
    if (!policies.has(gate.policy))
      yield { pointer: `${at}/policy`, message: `there is no gate policy "${gate.policy}"` }
    if (gate.at === 'before_step' && !steps.some((step) => step.id === gate.step))
      yield { pointer: `${at}/step`, message: `a gate before a step must name one of the steps` }
    if (gate.at !== 'before_step' && gate.step) yield { pointer: `${at}/step`, message: `belongs to "at: before_step"` }
    if (gate.at === 'after_canary' && !batch?.canary)
      yield { pointer: `${at}/at`, message: 'there is no canary: batch.canary is 0' }
    if (gate.at === 'between_batches' && !batch) yield { pointer: `${at}/at`, message: 'there are no batches' }
  }
}

function* checkSteps(procedure: Procedure): Check {
  for (const [i, step] of procedure.steps.entries()) {
    const at = pointerOf('steps', i)
    const before = needsOf(procedure.steps, step.id)
    yield* under('executor', checkExecutor(at, step.executor, step.with))
    yield* under('time', checkTimes(at, step))
    yield* under('secret', checkSecrets(at, procedure, step))
    yield* checkValue(procedure, step, before, step.with, `${at}/with`)
    yield* checkValue(procedure, step, new Set([...before, step.id]), step.catalog, `${at}/catalog`)
    for (const [place, write] of [
      ['catalog', step.catalog],
      ['compensate/catalog', step.compensate?.catalog],
    ] as const)
      if (write && procedure.scope === 'plan')
        yield {
          rule: 'scope',
          pointer: `${at}/${place}`,
          message: 'a procedure that runs once per plan has no resource to write',
        }
    yield* under('expression', checkCel(procedure, before, step.include_if, `${at}/include_if`, AT_PLAN))
    yield* under('expression', checkCel(procedure, before, step.when, `${at}/when`, AT_DISPATCH))
    if (step.compensate) {
      const with_own = new Set([...before, step.id])
      yield* under('executor', checkExecutor(`${at}/compensate`, step.compensate.executor, step.compensate.with))
      yield* checkValue(procedure, step, with_own, step.compensate.with, `${at}/compensate/with`)
      yield* checkValue(procedure, step, with_own, step.compensate.catalog, `${at}/compensate/catalog`)
      yield* under(
        'expression',
        checkCel(procedure, with_own, step.compensate.when, `${at}/compensate/when`, AT_DISPATCH),
      )
    }
  }
}

function* checkRead(procedure: Procedure): Check {
  const { read, scope, steps } = procedure
  if (!read) return
  if (scope === 'plan')
    yield { rule: 'scope', pointer: '/read', message: 'a procedure that runs once per plan has no target to read' }
  yield* under('executor', checkExecutor('/read', read.executor, read.with))
  if (read.executor === 'watch')
    yield { rule: 'executor', pointer: '/read/executor', message: 'must be one call: a watch is a step' }
  if (!EXECUTORS.get(read.executor)?.reads(isObject(read.with) ? read.with : {}))
    yield { rule: 'executor', pointer: '/read', message: 'must only read: executor http with GET or HEAD' }
  if (readPointer(read.with, '/poll') !== undefined)
    yield { rule: 'executor', pointer: '/read/with/poll', message: 'a read is one call, without a poll' }
  for (const step of steps.filter(({ needs }) => needs.length === 0)) {
    yield* checkValue(procedure, step, new Set(), read.with, '/read/with')
    yield* checkValue(procedure, step, new Set(), read.expect, '/read/expect')
  }
}

function* checkExecutor(at: string, name: string, values: unknown): Check {
  const executor = EXECUTORS.get(name)
  if (!executor)
    yield {
      pointer: `${at}/executor`,
      message:
        name === ''
          ? 'the step names no executor'
          : `there is no executor "${name}"; the executors are ${[...EXECUTORS.keys()].join(', ')}`,
    }
  else
    for (const fault of executor.check(isObject(values) ? values : {}))
      yield { pointer: `${at}/with${fault.pointer}`, message: fault.message }
}

/** Where a step states its duration. */
const LASTING: Record<string, string[]> = { http: ['/poll/timeout_s'], watch: ['/for_s'] }

function* checkTimes(at: string, step: Step): Check {
  // One that does not exist is said elsewhere.
  const longest = EXECUTORS.get(step.executor)?.max_run_s ?? Number.POSITIVE_INFINITY
  if (step.timeouts.run_s > longest)
    yield {
      pointer: `${at}/timeouts/run_s`,
      message: `the executor "${step.executor}" may run for at most ${longest} s`,
    }
  for (const pointer of LASTING[step.executor] ?? []) {
    const seconds = readPointer(step.with, pointer)
    if (typeof seconds === 'number' && seconds > step.timeouts.run_s)
      yield { pointer: `${at}/with${pointer}`, message: `is longer than the step may run (${step.timeouts.run_s} s)` }
  }
}

function* checkSecrets(at: string, procedure: Procedure, step: Step): Check {
  for (const [name, value] of Object.entries(step.secrets ?? {})) {
    const pointer = `${at}/secrets${pointerOf(name)}`
    if (typeof value === 'string') {
      if (!SECRET.test(value)) yield { pointer, message: 'must look like secret://provider/name#version' }
    } else {
      const from = isObject(value) ? value.$from : undefined
      if (typeof from !== 'string' || !from.startsWith('target/desired_state/') || procedure.scope === 'plan')
        yield { pointer, message: 'must be secret://provider/name#version, or {"$from": "target/desired_state/…"}' }
    }
  }
}

function* checkValue(procedure: Procedure, step: Step, before: ReadonlySet<string>, value: unknown, at: string): Check {
  if (value === undefined) return
  let found: ReturnType<typeof formsOf>
  try {
    found = formsOf(value, at)
  } catch (error) {
    if (!(error instanceof ValueError)) throw error
    yield { pointer: error.pointer, message: error.message }
    return
  }
  for (const reference of found.references) {
    const message = refuseReference(procedure, before, reference)
    if (message) yield { pointer: reference.at, message }
  }
  for (const { text, at: pointer } of found.expressions)
    yield* under('expression', checkCel(procedure, before, text, pointer, A_VALUE))
  for (const { text, at: pointer } of found.secrets)
    if (!Object.hasOwn(step.secrets ?? {}, text))
      yield { rule: 'secret', pointer, message: `the step has no secret "${text}"` }
}

const refuseReference = (
  procedure: Procedure,
  before: ReadonlySet<string>,
  { root, pointer, text, each }: Reference,
) => {
  const [first = '', ...rest] = tokensOf(pointer)
  if (root === 'nodes') return refuseOutput(procedure, before, first, rest)
  if (!(PLAN_ROOTS as readonly string[]).includes(root))
    return `"${text}" has an unknown root; the roots are ${[...PLAN_ROOTS, 'nodes'].join(', ')}`
  if (((root === 'target' && !each) || root === 'after' || root === 'batch') && procedure.scope === 'plan')
    return `"${text}" needs a target, but this procedure runs once per plan`
  if (root === 'after' && procedure.kind !== 'change')
    return `"${text}" needs a change, but this procedure is of kind ${procedure.kind}`
  if (root === 'target' && first !== '' && !TARGET_MEMBERS.has(first)) return `a target has no member "${first}"`
  if (root === 'params' && first !== '' && !isParameter(procedure, first)) return `there is no parameter "${first}"`
  return undefined
}

const refuseOutput = ({ steps }: Procedure, before: ReadonlySet<string>, id: string, rest: string[]) => {
  const step = steps.find((candidate) => candidate.id === id)
  if (!step) return `there is no step "${id}"`
  if (!before.has(id)) return `the step "${id}" does not come before this one`
  const [word, name = ''] = rest
  if (word !== 'outputs') return `only outputs of a step can be used: nodes/${id}/outputs/…`
  if (name !== '' && !Object.hasOwn(step.outputs ?? {}, name)) return `the step "${id}" declares no output "${name}"`
  return undefined
}

const isParameter = ({ parameters }: Procedure, name: string): boolean =>
  isObject(parameters.properties) && Object.hasOwn(parameters.properties, name)

const AT_PLAN = (source: string) => compileCondition(source, PLAN_ROOTS)
const AT_DISPATCH = (source: string) => compileCondition(source, [...PLAN_ROOTS, 'nodes'])
const A_VALUE = (source: string) => compileCel(source, PLAN_ROOTS)

function* checkCel(
  procedure: Procedure,
  before: ReadonlySet<string>,
  source: string | undefined,
  pointer: string,
  compile: (source: string) => CelProgram,
): Check {
  if (source === undefined) return
  try {
    for (const { root, path } of chainsOf(compile(source).ast)) {
      const reference = { root, pointer: pointerOf(...path), text: [root, ...path].join('.'), at: pointer }
      const message = refuseReference(procedure, before, reference)
      if (message) yield { pointer, message }
    }
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    yield { pointer, message: error.message }
  }
}
