import { isObject } from '../data/pointer.ts'
import { checkShape, type Fault, type IsOpen, REQUEST, type Shape } from './shape.ts'

const WATCH: Shape = {
  for_s: { kind: 'number', required: true, min: 1, max: 86_400 },
  every_s: { kind: 'number', required: true, min: 1, max: 3600 },
  tolerate: { kind: 'number', min: 0, max: 1000 },
  checks: { kind: 'list', required: true },
}
const PROBE: Shape = {
  name: { kind: 'text', required: true },
  request: { kind: 'object', required: true, shape: REQUEST },
  expect: { kind: 'cel' },
}
const QUERY: Shape = {
  name: { kind: 'text', required: true },
  prometheus: { kind: 'text', required: true },
  query: { kind: 'text', required: true },
  headers: { kind: 'headers' },
  timeout_s: { kind: 'number', min: 1, max: 60 },
  min: { kind: 'number' },
  max: { kind: 'number' },
  baseline: {
    kind: 'object',
    shape: {
      query: { kind: 'text', required: true },
      max_ratio: { kind: 'number', required: true, min: 0 },
      slack: { kind: 'number', min: 0 },
    },
  },
}
const MAX_CHECKS = 20

/** Each check is a probe or a query with a bound; names are unique, because they identify the samples. */
export const checkWatch = (values: Record<string, unknown>, isOpen: IsOpen): Fault[] => {
  const { checks, for_s, every_s } = values
  const faults = checkShape(values, WATCH, '', isOpen)
  if (typeof for_s === 'number' && typeof every_s === 'number' && every_s > for_s)
    faults.push({ pointer: '/every_s', message: 'must be at most for_s' })
  if (!Array.isArray(checks)) return faults
  if (checks.length < 1 || checks.length > MAX_CHECKS)
    faults.push({ pointer: '/checks', message: `must have 1 to ${MAX_CHECKS} checks` })
  const names = new Set<unknown>()
  for (const [i, check] of checks.slice(0, MAX_CHECKS).entries()) {
    const pointer = `/checks/${i}`
    if (!isObject(check)) {
      faults.push({ pointer, message: 'must be an object' })
      continue
    }
    if (isOpen(check)) continue
    if (typeof check.name === 'string' && !/^[a-z][a-z0-9_-]{0,39}$/.test(check.name))
      faults.push({ pointer: `${pointer}/name`, message: 'must start with a letter, then at most 39 of a-z 0-9 _ -' })
    if (names.has(check.name)) faults.push({ pointer: `${pointer}/name`, message: 'is the name of another check' })
    names.add(check.name)
    const probe = 'request' in check
    if (probe === 'query' in check) faults.push({ pointer, message: 'must have either request or query' })
    else
      faults.push(
        ...checkShape(check, probe ? PROBE : QUERY, pointer, isOpen),
        ...(probe ? probeFaults : queryFaults)(check, pointer),
      )
  }
  return faults
}

const ADDRESS = /^https?:\/\//
const probeFaults = ({ request }: Record<string, unknown>, pointer: string): Fault[] => {
  if (!isObject(request)) return []
  const { method, url, timeout_s } = request
  const faults: Fault[] = []
  if (typeof method === 'string' && !['GET', 'HEAD'].includes(method))
    faults.push({ pointer: `${pointer}/request/method`, message: 'must be GET or HEAD: a probe must have no effect' })
  if (typeof url === 'string' && !ADDRESS.test(url))
    faults.push({ pointer: `${pointer}/request/url`, message: 'must be an http or https address' })
  if (typeof timeout_s === 'number' && timeout_s > 60)
    faults.push({ pointer: `${pointer}/request/timeout_s`, message: 'must be at most 60 for a probe' })
  return faults
}

const queryFaults = (check: Record<string, unknown>, pointer: string): Fault[] => {
  const { prometheus, min, max, baseline } = check
  const faults: Fault[] = []
  if (typeof prometheus === 'string' && !ADDRESS.test(prometheus))
    faults.push({ pointer: `${pointer}/prometheus`, message: 'must be an http or https address' })
  if (min === undefined && max === undefined && baseline === undefined)
    faults.push({ pointer, message: 'has no bound: give min, max or baseline' })
  if (typeof min === 'number' && typeof max === 'number' && min > max)
    faults.push({ pointer: `${pointer}/min`, message: 'must be at most max' })
  return faults
}
