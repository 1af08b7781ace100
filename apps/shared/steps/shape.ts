import { isObject } from '../data/pointer.ts'
import { CelError, compileCondition } from '../expressions/cel.ts'
import { connectionHeader, isConnectionHeader } from '../web/headers.ts'

export type Fault = { pointer: string; message: string }

type Kind = 'text' | 'number' | 'object' | 'headers' | 'list' | 'cel' | 'any'
export type Shape = Record<
  string,
  { kind: Kind; required?: boolean; min?: number; max?: number; shape?: Shape; one_of?: string[] }
>

/** RFC 9110 5.5, as Node checks it. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

const METHODS = ['GET', 'HEAD', 'PUT', 'DELETE', 'POST', 'PATCH', 'OPTIONS']

/** The form of an HTTP call in a step. */
export const REQUEST: Shape = {
  method: { kind: 'text', required: true, one_of: METHODS },
  url: { kind: 'text', required: true },
  headers: { kind: 'headers' },
  query: { kind: 'object' },
  body: { kind: 'any' },
  timeout_s: { kind: 'number', min: 1, max: 120 },
}

/** Whether a value is not known yet: it always fits. */
export type IsOpen = (value: unknown) => boolean

/** Whether a value of a plan is an unresolved form such as {"$from": …}. */
export const isForm: IsOpen = (value) => isObject(value) && Object.keys(value).some((key) => key.startsWith('$'))

/** Returns why values do not fit a shape. */
export const checkShape = (values: Record<string, unknown>, shape: Shape, at: string, isOpen: IsOpen): Fault[] => {
  const faults: Fault[] = []
  for (const key of Object.keys(values))
    if (!Object.hasOwn(shape, key))
      faults.push({ pointer: `${at}/${key}`, message: 'is not a member of this executor' })
  for (const [key, rule] of Object.entries(shape)) {
    const value = values[key]
    const pointer = `${at}/${key}`
    if (value === undefined) {
      if (rule.required) faults.push({ pointer, message: 'is required' })
    } else if (!isOpen(value)) {
      const message = faultOf(value, rule)
      if (message) faults.push({ pointer, message })
      else if (rule.shape && isObject(value)) faults.push(...checkShape(value, rule.shape, pointer, isOpen))
    }
  }
  return faults
}

const faultOf = (value: unknown, rule: Shape[string]): string | undefined => {
  const { kind, min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY, one_of } = rule
  if (kind === 'text' || kind === 'cel') {
    if (typeof value !== 'string') return 'must be a string'
    if (one_of && !one_of.includes(value)) return `must be one of ${one_of.join(', ')}`
    return kind === 'cel' ? celFault(value) : undefined
  }
  if (kind === 'number')
    return typeof value === 'number' && value >= min && value <= max
      ? undefined
      : `must be a number from ${min} to ${max}`
  if (kind === 'object') return isObject(value) ? undefined : 'must be an object'
  if (kind === 'headers') {
    if (!isObject(value)) return 'must be an object'
    const refused = Object.keys(value).find(isConnectionHeader)
    if (refused !== undefined) return connectionHeader(refused)
    const broken = Object.entries(value).find(([, text]) => typeof text === 'string' && !HEADER_VALUE.test(text))
    return broken && `has a value of ${broken[0]} that no header can have, such as one with a line break`
  }
  if (kind === 'list') return Array.isArray(value) ? undefined : 'must be a list'
  return undefined
}

const celFault = (source: string): string | undefined => {
  try {
    compileCondition(source, ['response'])
    return undefined
  } catch (error) {
    if (error instanceof CelError) return `is not an expression over response: ${error.message}`
    throw error
  }
}
