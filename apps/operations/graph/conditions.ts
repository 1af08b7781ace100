import type { ASTNode } from '@marcbachmann/cel-js'
import { CelError, childrenOf, compileCel, compileCondition } from '../../shared/expressions/cel.ts'
import { PLAN_ROOTS } from '../../shared/expressions/values.ts'

/** An access in a condition that names a value: `params.drain_s` is root params, path [drain_s]. */
type Chain = { root: string; path: string[]; node: ASTNode }

const ROOTS = new Set<string>([...PLAN_ROOTS, 'nodes'])

/** Returns the longest accesses in an expression that begin at a known root; a computed part ends the path. */
export const chainsOf = (ast: ASTNode): Chain[] => {
  const chain = chainAt(ast)
  if (chain) return [chain]
  return childrenOf(ast).flatMap(chainsOf)
}

const chainAt = (node: ASTNode): Chain | undefined => {
  if (node.op === 'id') return ROOTS.has(node.args) ? { root: node.args, path: [], node } : undefined
  if (node.op === '.') {
    const base = chainAt(node.args[0])
    return base && { root: base.root, path: [...base.path, node.args[1]], node }
  }
  if (node.op === '[]' && node.args[1].op === 'value' && typeof node.args[1].args === 'string') {
    const base = chainAt(node.args[0])
    return base && { root: base.root, path: [...base.path, node.args[1].args], node }
  }
  return undefined
}

type Splice = { start: number; end: number; text: string }

/**
 * Returns a condition as dispatch evaluates it, over `nodes` alone: plan-time values become literals, and steps are
 * named by their nodes. Throws CelError if a step is unknown.
 */
export const foldCondition = (
  source: string,
  roots: Record<string, unknown>,
  nodeOf: (step: string) => string | undefined,
): string => {
  const { ast } = compileCondition(source, [...PLAN_ROOTS, 'nodes'])
  const splices = splicesOf(ast, source, roots, nodeOf).sort((a, b) => b.start - a.start)
  let folded = source
  for (const { start, end, text } of splices) folded = folded.slice(0, start) + text + folded.slice(end)
  compileCondition(folded, ['nodes'])
  return folded
}

const splicesOf = (
  node: ASTNode,
  source: string,
  roots: Record<string, unknown>,
  nodeOf: (step: string) => string | undefined,
): Splice[] => {
  const { start, end } = node.range
  // has(x.y) tests the access itself, and x.?y yields a value without a literal form, so both are evaluated as a whole.
  const whole = (node.op === 'call' && node.args[0] === 'has') || node.op === '.?' || node.op === '[?]'
  const inner = whole ? childrenOf(node).flatMap(chainsOf) : []
  if (whole && inner.length > 0 && inner.every((chain) => chain.root !== 'nodes')) {
    const text = source.slice(start, end)
    if (node.op === 'call') return [{ start, end, text: String(compileCel(text, PLAN_ROOTS).test(roots)) }]
    const value = compileCel(`(${text}).orValue(null)`, PLAN_ROOTS).evaluate(roots)
    return [{ start, end, text: value === null ? 'optional.none()' : `optional.of(${literal(value)})` }]
  }
  const chain = chainAt(node)
  if (!chain) return childrenOf(node).flatMap((child) => splicesOf(child, source, roots, nodeOf))
  if (chain.root === 'nodes') return spliceStep(chain, nodeOf)
  return [{ start, end, text: valueText(source.slice(start, end), roots) }]
}

const spliceStep = (chain: Chain, nodeOf: (step: string) => string | undefined): Splice[] => {
  const [step, ...rest] = chain.path
  const id = step === undefined ? undefined : nodeOf(step)
  if (id === undefined) throw new CelError(`There is no step "${step ?? ''}" in this procedure`)
  const path = [id, ...rest].map((token) => `[${JSON.stringify(token)}]`).join('')
  return [{ start: chain.node.range.start, end: chain.node.range.end, text: `nodes${path}` }]
}

/** A missing value is still an error, but only if evaluation reaches it: `has(target.x) && target.x == 1` is fine. */
const valueText = (text: string, roots: Record<string, unknown>): string => {
  try {
    return literal(compileCel(text, PLAN_ROOTS).evaluate(roots) ?? null)
  } catch (error) {
    if (error instanceof CelError) return `dyn({})[${JSON.stringify(text)}]`
    throw error
  }
}

const literal = (value: unknown): string => {
  if (typeof value === 'number') return Number.isInteger(value) ? `dyn(${value}.0)` : `dyn(${value})`
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, item]) => `${JSON.stringify(key)}: ${literal(item)}`)
      .join(', ')}}`
  return `dyn(${JSON.stringify(value)})`
}
