import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { JOB_INPUTS } from '../contracts/engine/jobs.ts'
import { isObject, pointerOf, readPointer, tokensOf } from '../data/pointer.ts'

type Fault = { pointer: string; message: string }

/**
 * Returns the inputs that a job of `signalbox agent` does not take: an ignored one would let a job run that differs from
 * the approved text. Values that `isOpen` names are known only when the step starts. Other jobs have no faults.
 */
export const faultsInJob = (
  job: unknown,
  inputs: Record<string, unknown>,
  isOpen: (value: unknown) => boolean = () => false,
): Fault[] => {
  const schema = typeof job === 'string' ? JOB_INPUTS.get(job) : undefined
  if (!schema) return []
  const faults = new Map<string, string>()
  for (const { keyword, instancePath, schemaPath, params } of Value.Errors(schema, inputs)) {
    if (isUnknown(inputs, instancePath, isOpen)) continue
    const { properties, description } = readPointer(schema, schemaPath.slice(1)) as TSchema & Record<string, unknown>
    if (keyword !== 'additionalProperties') {
      if (typeof description === 'string') faults.set(instancePath, `must be ${description}`)
      continue
    }
    for (const name of (params as { additionalProperties: string[] }).additionalProperties) {
      const meant = nearest(name, Object.keys(isObject(properties) ? properties : {}))
      const words = meant === undefined ? '' : `; did you mean "${meant}"?`
      faults.set(instancePath + pointerOf(name), `is not an input of ${job}${words}`)
    }
  }
  return [...faults].map(([pointer, message]) => ({ pointer, message }))
}

/** Whether the value at this place, or one around it, is known only later. */
const isUnknown = (inputs: object, pointer: string, isOpen: (value: unknown) => boolean): boolean =>
  tokensOf(pointer).some((_, i, tokens) => isOpen(readPointer(inputs, pointerOf(...tokens.slice(0, i + 1)))))

/** The name that differs by at most two letters. */
const nearest = (name: string, names: readonly string[]): string | undefined =>
  names
    .map((known) => ({ known, far: distance(name, known) }))
    .filter(({ far, known }) => far <= 2 && far < known.length / 2)
    .sort((a, b) => a.far - b.far)[0]?.known

/** How many letters must be changed, added or removed. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= Math.min(a.length, 64); i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same))
    }
    row = next
  }
  return (row[b.length] ?? 0) + Math.max(a.length - 64, 0)
}
