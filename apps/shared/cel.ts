import { type ASTNode, Environment, Optional, type ParseResult } from '@marcbachmann/cel-js'

/** Bounds of one expression (operations.md 4.1 "CEL"). */
export const CEL_LIMITS = { bytes: 2048, nodes: 500, depth: 32, nested_macros: 2 } as const

/** An expression that does not compile, or that cannot be evaluated over what it was given. */
export class CelError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CelError'
  }
}

export type CelProgram = {
  source: string
  ast: ASTNode
  /** The value as plain JSON; integers come back as numbers. Throws CelError. */
  evaluate: (context: Record<string, unknown>) => unknown
  /** The value of a condition. Throws CelError when it is not a boolean: a missing key is an error, never false. */
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
    throw new CelError(`The expression is longer than ${CEL_LIMITS.bytes} bytes.`)
  let parsed: ParseResult
  try {
    parsed = environmentOf(variables).parse(source)
  } catch (error) {
    throw new CelError(lineOf(error), { cause: error })
  }
  checkShape(parsed.ast, new Set(variables), 0)
  const checked = parsed.check()
  if (!checked.valid) throw new CelError(lineOf(checked.error), { cause: checked.error })
  const program = programOf(source, parsed)
  if (programs.size >= CACHED) programs.clear()
  programs.set(key, program)
  return program
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

const programOf = (source: string, parsed: ParseResult): CelProgram => {
  const evaluate = (context: Record<string, unknown>): unknown => {
    try {
      return toJson(parsed(context))
    } catch (error) {
      throw error instanceof CelError ? error : new CelError(lineOf(error), { cause: error })
    }
  }
  const test = (context: Record<string, unknown>): boolean => {
    const value = evaluate(context)
    if (typeof value !== 'boolean') throw new CelError(`"${source}" gives ${typeof value}, not true or false.`)
    return value
  }
  return { source, ast: parsed.ast, evaluate, test }
}

/** Children of a node, whatever its operator. */
export const childrenOf = (node: ASTNode): ASTNode[] => {
  const args = (Array.isArray(node.args) ? node.args.flat(2) : [node.args]) as unknown[]
  return args.filter((arg): arg is ASTNode => typeof arg === 'object' && arg !== null && 'op' in arg)
}

/** Names that a macro such as exists(x, …) binds. */
const boundBy = (node: ASTNode): string[] => {
  if (node.op !== 'rcall' || !MACROS.has(node.args[0])) return []
  const names = node.args[2].slice(0, -1).filter((arg) => arg.op === 'id')
  return names.map((arg) => String(arg.args))
}

const checkShape = (node: ASTNode, variables: ReadonlySet<string>, macros: number): void => {
  if ((node.op === 'call' || node.op === 'rcall') && node.args[0] === 'matches')
    throw new CelError('"matches" is not available: compare with ==, startsWith, endsWith or contains.')
  const bound = boundBy(node)
  for (const name of bound)
    if (variables.has(name)) throw new CelError(`"${name}" is already the name of a value; bind another name.`)
  const nested = bound.length > 0 ? macros + 1 : macros
  if (nested > CEL_LIMITS.nested_macros)
    throw new CelError(`Macros are nested deeper than ${CEL_LIMITS.nested_macros}.`)
  for (const child of childrenOf(node)) checkShape(child, variables, nested)
}

const toJson = (value: unknown): unknown => {
  if (typeof value === 'bigint') {
    const number = Number(value)
    if (!Number.isSafeInteger(number)) throw new CelError(`${value} is beyond the integers that JSON carries exactly.`)
    return number
  }
  if (value instanceof Optional) return value.hasValue() ? toJson(value.value()) : null
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(toJson)
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), toJson(item)]))
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new CelError('The value is not a finite number.')
    return value
  }
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item)]))
  throw new CelError('The value has no form in JSON.')
}

const lineOf = (error: unknown): string => String((error as Error | undefined)?.message ?? error).split('\n')[0] ?? ''
