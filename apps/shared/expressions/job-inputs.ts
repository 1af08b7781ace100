import type { TSchema } from 'typebox'
import { JOB_INPUTS } from '../contracts/engine/jobs.ts'
import { isObject, pointerOf } from '../data/pointer.ts'

type Fault = { pointer: string; message: string }
/** The keywords that the lists of inputs use. */
type Shape = TSchema & {
  type?: string
  const?: unknown
  minimum?: number
  maximum?: number
  anyOf?: Shape[]
  items?: Shape
  properties?: Record<string, Shape>
  patternProperties?: Record<string, Shape>
  description?: string
}
type Rules = { isOpen: (value: unknown) => boolean; strange: (name: string, known: readonly string[]) => string }

/** Comparing a name with all others takes time, and a body may hold a hundred thousand names. */
const MOST_MEANT = 20

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
  let compared = 0
  const strange = (name: string, known: readonly string[]) => {
    compared += 1
    const meant = compared > MOST_MEANT ? undefined : nearest(name, known)
    return `is not an input of ${job}${meant === undefined ? '' : `; did you mean "${meant}"?`}`
  }
  return [...faultsAt('', schema, inputs, { isOpen, strange })]
}

function* faultsAt(at: string, shape: Shape, value: unknown, rules: Rules): Generator<Fault> {
  if (rules.isOpen(value)) return
  const { anyOf = [shape], description = anyOf[0]?.description } = shape
  const meant = anyOf.find((one) => isOf(one, value))
  if (!meant) yield { pointer: at, message: `must be ${description}` }
  else if (isObject(value)) yield* faultsInMembers(at, meant, value, rules)
  else if (Array.isArray(value) && meant.items)
    for (const [i, item] of value.entries()) yield* faultsAt(at + pointerOf(i), meant.items, item, rules)
}

/**
 * Integers below this bound that may have lost their last digits on the way here: a tool would get others than were written.
 * From 1e21 on JSON writes an exponent, as of a measured value.
 */
export function* inexactIn(value: unknown, below = 1e21, pointer = ''): Generator<Fault> {
  const isInexact = Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(Number(value)) < below
  if (isInexact) yield { pointer, message: 'is an integer beyond 2^53, which loses digits: give it as a string' }
  else if (isObject(value) || Array.isArray(value))
    for (const [name, member] of Object.entries(value)) yield* inexactIn(member, below, pointer + pointerOf(name))
}

/** An object of known members, whose null counts as absent, or one whose members have any name and are alike. */
function* faultsInMembers(
  at: string,
  { properties, patternProperties = {} }: Shape,
  value: Record<string, unknown>,
  rules: Rules,
): Generator<Fault> {
  const [each] = Object.values(patternProperties)
  for (const [name, member] of Object.entries(value)) {
    const pointer = at + pointerOf(name)
    const shape = properties && Object.hasOwn(properties, name) ? properties[name] : each
    if (shape && properties && member === null) continue
    if (shape) yield* faultsAt(pointer, shape, member, rules)
    else if (properties) yield { pointer, message: rules.strange(name, Object.keys(properties)) }
  }
}

const isOf = ({ type, const: only, minimum, maximum }: Shape, value: unknown): boolean =>
  (type === 'integer' ? Number.isInteger(value) : type === undefined || type === kindOf(value)) &&
  (only === undefined || only === value) &&
  !(minimum !== undefined && Number(value) < minimum) &&
  !(maximum !== undefined && Number(value) > maximum)

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)

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
