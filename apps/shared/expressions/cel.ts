import { createContext, Script } from 'node:vm'
import { type ASTNode, Environment, Optional, type ParseResult } from '@marcbachmann/cel-js'

/**
 * Bounds of one expression (operations.md 4.1 "CEL"), and of its work on its input. `steps` bounds loops by the size of
 * their input, `ms` costs that no count predicts (a search in a list, inside a loop), `values` the result.
 */
export const CEL_LIMITS = {
  bytes: 2048,
  nodes: 500,
  depth: 32,
  nested_macros: 2,
  steps: 20_000_000,
  ms: 2000,
  values: 100_000,
  /** Of one request, and of one record of a running operation: the process serves no one else meanwhile. */
  plan_ms: 3000,
  record_ms: 2000,
} as const

/** An expression that does not compile, or that cannot be evaluated on its input. */
export class CelError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CelError'
  }
}

export type CelProgram = {
  source: string
  ast: ASTNode
  /** The type of its value as far as it is known before it is evaluated; `dyn`: unknown. */
  type: string
  /** Returns the value as plain JSON; integers become numbers. Throws CelError. */
  evaluate: (context: Record<string, unknown>) => unknown
  /** Returns the value of a condition. Throws CelError if it is not a boolean: a missing key is an error, not false. */
  test: (context: Record<string, unknown>) => boolean
}

const MACROS = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])
const environments = new Map<string, Environment>()
const programs = new Map<string, CelProgram>()
const CACHED = 2000

/** Compiles an expression over the named variables, within CEL_LIMITS; `matches` is refused. Equal input is compiled once. */
export const compileCel = (source: string, variables: readonly string[]): CelProgram => {
  const key = `${variables.join()}\n${source}`
  const known = programs.get(key)
  if (known) return known
  if (Buffer.byteLength(source) > CEL_LIMITS.bytes)
    throw new CelError(`The expression is longer than ${CEL_LIMITS.bytes} bytes`)
  let parsed: ParseResult
  try {
    parsed = environmentOf(variables).parse(source)
  } catch (error) {
    throw new CelError(lineOf(error), { cause: error })
  }
  const power = checkShape(parsed.ast, new Set(variables), 0)
  const checked = parsed.check()
  if (!checked.valid) throw new CelError(lineOf(checked.error), { cause: checked.error })
  const program = programOf(source, parsed, power, String(checked.type))
  if (programs.size >= CACHED) programs.clear()
  programs.set(key, program)
  return program
}

/** Compiles a condition that a person writes: one whose value can be neither true nor false would never be met. */
export const compileCondition = (source: string, variables: readonly string[]): CelProgram => {
  const program = compileCel(source, variables)
  if (program.type === 'bool' || program.type === 'dyn') return program
  throw new CelError(`"${source}" has a value of type ${program.type}, not true or false`)
}

const environmentOf = (variables: readonly string[]): Environment => {
  const key = variables.join()
  let environment = environments.get(key)
  if (!environment) {
    environment = new Environment({
      unlistedVariablesAreDyn: false,
      homogeneousAggregateLiterals: false,
      enableOptionalTypes: true,
      limits: { maxAstNodes: CEL_LIMITS.nodes, maxDepth: CEL_LIMITS.depth },
    })
    for (const name of variables) environment.registerVariable(name, 'dyn')
    environments.set(key, environment)
  }
  return environment
}

const LATE = 'The expressions take longer than the time that all of them have together'
let left_ms = Number.POSITIVE_INFINITY
let late = false
/** Does work whose expressions have this much time together; those that come later throw CelError. */
export const withinTime = <T>(ms: number, work: () => T): T => {
  const before = { left_ms, late }
  left_ms = ms
  late = false
  try {
    return work()
  } finally {
    left_ms = before.left_ms
    late = before.late
  }
}

/** As `withinTime`, but throws CelError also if the work passed over an expression that came too late. */
export const allWithinTime = <T>(ms: number, work: () => T): T =>
  withinTime(ms, () => {
    const done = work()
    if (late) throw new CelError(LATE)
    return done
  })

const programOf = (source: string, parsed: ParseResult, power: number, type: string): CelProgram => {
  const evaluate = (context: Record<string, unknown>): unknown => {
    if (left_ms <= 0) {
      late = true
      throw new CelError(LATE)
    }
    const begun = performance.now()
    const run = () => {
      const value: unknown = parsed(context)
      const absent = value instanceof Optional && !value.hasValue()
      return absent ? undefined : toJson(value, { left: CEL_LIMITS.values })
    }
    try {
      if (power === 0) return run()
      const most = Math.floor(CEL_LIMITS.steps ** (1 / power))
      const size = sizeOf(context, most)
      if (size > most) throw new CelError(`The loops of the expression iterate over more than ${most} values`)
      return size <= SMALL ? run() : inTime(run)
    } catch (error) {
      throw error instanceof CelError ? error : new CelError(lineOf(error), { cause: error })
    } finally {
      left_ms -= performance.now() - begun
    }
  }
  const test = (context: Record<string, unknown>): boolean => {
    const value = evaluate(context)
    if (typeof value !== 'boolean')
      throw new CelError(`"${source}" returns a value of type ${typeof value}, not true or false`)
    return value
  }
  return { source, ast: parsed.ast, type, evaluate, test }
}

/** Returns the children of a node, whatever its operator. */
export const childrenOf = (node: ASTNode): ASTNode[] => {
  const args = (Array.isArray(node.args) ? node.args.flat(2) : [node.args]) as unknown[]
  return args.filter((arg): arg is ASTNode => typeof arg === 'object' && arg !== null && 'op' in arg)
}

/** Returns the names that a macro such as exists(x, …) binds. */
const boundBy = (node: ASTNode): string[] => {
  if (node.op !== 'rcall' || !MACROS.has(node.args[0])) return []
  const names = node.args[2].slice(0, -1).filter((arg) => arg.op === 'id')
  return names.map((arg) => String(arg.args))
}

/** With up to this many values, no loop within these limits takes long. */
const SMALL = 200

/** Counts the values in a context, until there are more than `most`. */
const sizeOf = (context: unknown, most: number): number => {
  let size = 0
  const open = [context]
  for (let value = open.pop(); value !== undefined && size <= most; value = open.pop()) {
    size += 1
    if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) open.push(member ?? 0)
  }
  return size
}

const sandbox = createContext({ run: undefined as unknown })
const call = new Script('run()')

/** Runs a function and interrupts it when it takes too long; this is the only way to interrupt a loop. */
const inTime = <T>(run: () => T): T => {
  sandbox.run = run
  try {
    return call.runInContext(sandbox, { timeout: CEL_LIMITS.ms }) as T
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      throw new CelError(`The expression takes longer than ${CEL_LIMITS.ms} ms`)
    throw error
  } finally {
    sandbox.run = undefined
  }
}

/** Refuses forbidden expressions. Returns the power of input it costs: nested loops, plus one if one joins lists. */
const checkShape = (node: ASTNode, variables: ReadonlySet<string>, macros: number): number => {
  if ((node.op === 'call' || node.op === 'rcall') && node.args[0] === 'matches')
    throw new CelError('"matches" is not available: compare with ==, startsWith, endsWith or contains')
  const bound = boundBy(node)
  for (const name of bound)
    if (variables.has(name)) throw new CelError(`"${name}" is already the name of a value; bind another name`)
  const nested = bound.length > 0 ? macros + 1 : macros
  if (nested > CEL_LIMITS.nested_macros) throw new CelError(`Macros are nested deeper than ${CEL_LIMITS.nested_macros}`)
  const own = nested + (nested > 0 && node.op === '+' ? 1 : 0)
  return Math.max(own, ...childrenOf(node).map((child) => checkShape(child, variables, nested)))
}

const toJson = (value: unknown, budget: { left: number }): unknown => {
  budget.left -= 1
  if (budget.left < 0) throw new CelError(`The value has more than ${CEL_LIMITS.values} parts`)
  if (typeof value === 'bigint') {
    const number = Number(value)
    if (!Number.isSafeInteger(number)) throw new CelError(`${value} is beyond the integers that JSON carries exactly`)
    return number
  }
  if (value instanceof Optional) return value.hasValue() ? toJson(value.value(), budget) : null
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map((item) => toJson(item, budget))
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([key, item]) => [String(key), toJson(item, budget)]))
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new CelError('The value is not a finite number')
    return value
  }
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item, budget)]))
  throw new CelError('The value cannot be written as JSON')
}

const lineOf = (error: unknown): string => String((error as Error | undefined)?.message ?? error).split('\n')[0] ?? ''
