import type { NodeError, PlanNode } from '../contracts/operations/graph.ts'
import { compileSchema } from '../data/json-schema.ts'
import { isObject, readPointer } from '../data/pointer.ts'

/** Executors whose raw result is the outputs if the node names none. */
const WHOLE: ReadonlySet<string> = new Set(['command', 'external', 'noop', 'watch'])

/** Whether a node may have an output of this name: one that it names, or any if its raw result is its outputs. */
export const mayOutput = ({ outputs, executor }: Pick<PlanNode, 'outputs' | 'executor'>, name: string): boolean =>
  outputs ? Object.hasOwn(outputs, name) : WHOLE.has(executor)

/** Returns the named parts of an executor's raw result, and their fault if there is one. */
export const takeOutputs = (
  spec: Pick<PlanNode, 'outputs' | 'outputs_schema' | 'executor'>,
  raw: unknown,
): { outputs: Record<string, unknown> | null; error: NodeError | null } => {
  const outputs = spec.outputs ? pick(spec.outputs, raw) : WHOLE.has(spec.executor) && isObject(raw) ? raw : null
  if (!spec.outputs_schema) return { outputs, error: null }
  const [fault] = compileSchema(spec.outputs_schema)(outputs ?? {})
  if (!fault) return { outputs, error: null }
  const message = `The outputs do not match the node's schema: ${fault.pointer || '/'} ${fault.message}`
  return { outputs, error: { class: 'outputs_invalid', message, retryable: false } }
}

const pick = (named: Record<string, string>, raw: unknown): Record<string, unknown> => {
  const outputs: Record<string, unknown> = {}
  for (const [name, pointer] of Object.entries(named)) {
    const value = readPointer(raw, pointer)
    if (value !== undefined) outputs[name] = value
  }
  return outputs
}
