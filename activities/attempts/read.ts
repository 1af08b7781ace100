import { isDeepStrictEqual } from 'node:util'
import { TARGET_DRIFTED, type TargetRead } from '../../apps/shared/contracts/operations/graph.ts'
import { isObject, readPointer } from '../../apps/shared/data/pointer.ts'
import { resolveValue } from '../../apps/shared/expressions/values.ts'
import type { ExecutorResult } from '../executors/types.ts'

/** The look at a target before its first effect, with its values filled in (operations.md 4.1, `read`). */
export type Look = { executor: string; with: Record<string, unknown>; expect: Record<string, unknown> }

export const lookOf = ({ executor, ...read }: TargetRead, secrets: Record<string, string>): Look => {
  const of = (value: unknown) => {
    const known = resolveValue(value, { nodes: {}, secrets })
    return isObject(known) ? known : {}
  }
  return { executor, with: of(read.with), expect: of(read.expect) }
}

/**
 * Returns why an attempt must not act on its target: it could not be read, or it is not as planned. `undefined` if it
 * is as planned. After a repeat it is unknown whether the attempt itself made the difference.
 */
export const refuseTarget = (
  { expect }: Look,
  seen: ExecutorResult,
  repeated: boolean,
): Exclude<ExecutorResult, { status: 'succeeded' | 'pending' }> | undefined => {
  if (seen.status === 'failed') return seen
  if (seen.status !== 'succeeded')
    return { status: 'failed', class: 'unreachable', message: 'The target could not be read before the first effect.' }
  const differs = Object.entries(expect).flatMap(([place, planned]) => {
    const found = readPointer(seen.raw, place)
    return isDeepStrictEqual(found, planned)
      ? []
      : [`${place} is ${told(found)}, but the plan expects ${told(planned)}`]
  })
  if (differs.length === 0) return undefined
  const message = `The target differs from the plan: ${differs.join('; ')}.`
  const found = { class: TARGET_DRIFTED, message }
  return repeated ? { status: 'unknown', ...found } : { status: 'failed', ...found, hint: HINT }
}

const HINT = 'Bring the target or the catalog in line, retry this node, and resume. Or cancel, and plan again.'
const told = (value: unknown): string => (value === undefined ? 'missing' : JSON.stringify(value).slice(0, 100))
