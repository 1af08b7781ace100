import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import { CelError, compileCel } from '../../shared/expressions/cel.ts'

/** What the planner must know of an executor to refuse a step that could never run (operations.md 7). */
export type ExecutorFacts = {
  max_run_s: number
  /** Reasons why `with` does not fit, with the pointer below it. Values that only dispatch knows fit anything. */
  check: (values: Record<string, unknown>) => Fault[]
  /** Whether a step only reads: it has no effect that would have to be undone. */
  reads: (values: Record<string, unknown>) => boolean
  idempotent: (values: Record<string, unknown>) => boolean
}
export type Fault = { pointer: string; message: string }

/** A reference to a secret: its value never stands in a plan. */
export const SECRET = /^secret:\/\/[a-z][a-z0-9-]{0,30}\/[A-Za-z0-9][A-Za-z0-9._/-]{0,127}#[A-Za-z0-9._-]{1,64}$/

const METHODS = ['GET', 'HEAD', 'PUT', 'DELETE', 'POST', 'PATCH', 'OPTIONS']
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])
const REPEATABLE = new Set([...SAFE, 'PUT', 'DELETE'])

type Kind = 'text' | 'number' | 'object' | 'list' | 'cel' | 'any'
type Shape = Record<
  string,
  { kind: Kind; required?: boolean; min?: number; max?: number; shape?: Shape; one_of?: string[] }
>

const REQUEST: Shape = {
  method: { kind: 'text', required: true, one_of: METHODS },
  url: { kind: 'text', required: true },
  headers: { kind: 'object' },
  query: { kind: 'object' },
  body: { kind: 'any' },
  timeout_s: { kind: 'number', min: 1, max: 120 },
}
const HTTP: Shape = {
  base_url: { kind: 'text' },
  headers: { kind: 'object' },
  request: { kind: 'object', required: true, shape: REQUEST },
  expect: { kind: 'cel' },
  fail_if: { kind: 'cel' },
  reason: { kind: 'text' },
  poll: {
    kind: 'object',
    shape: {
      request: { kind: 'object', required: true, shape: REQUEST },
      until: { kind: 'cel', required: true },
      fail_if: { kind: 'cel' },
      interval_s: { kind: 'number', required: true, min: 1, max: 3600 },
      timeout_s: { kind: 'number', required: true, min: 1, max: 86_400 },
    },
  },
  max_response_bytes: { kind: 'number', min: 1, max: 8_388_608 },
  artifacts: { kind: 'list' },
}
const EXTERNAL: Shape = {
  job: { kind: 'text', required: true },
  inputs: { kind: 'object' },
  labels: { kind: 'object' },
}
const COMMAND: Shape = {
  program: { kind: 'text', required: true },
  args: { kind: 'list' },
  stdin: { kind: 'text' },
  env: { kind: 'object' },
  files: { kind: 'object' },
  exit_codes: { kind: 'object', shape: { ok: { kind: 'list' }, retry: { kind: 'list' } } },
  timeout_s: { kind: 'number', min: 1, max: 600 },
}
const NOOP: Shape = { delay_ms: { kind: 'number', min: 0, max: 600_000 }, outputs: { kind: 'object' } }

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
  headers: { kind: 'object' },
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

const methodOf = (values: Record<string, unknown>): string => {
  const request = values.request
  return isObject(request) && typeof request.method === 'string' ? request.method : 'POST'
}

/** The executors that this installation runs. */
export const EXECUTORS: ReadonlyMap<string, ExecutorFacts> = new Map([
  [
    'http',
    {
      max_run_s: 86_400,
      check: (values) => [...checkShape(values, HTTP, ''), ...checkHttp(values)],
      reads: (values) => SAFE.has(methodOf(values)),
      idempotent: (values) => REPEATABLE.has(methodOf(values)),
    },
  ],
  [
    'command',
    {
      max_run_s: 600,
      check: (values) => [...checkShape(values, COMMAND, ''), ...checkCommand(values)],
      reads: () => false,
      idempotent: () => false,
    },
  ],
  [
    'external',
    {
      max_run_s: 86_400,
      check: (values) => checkShape(values, EXTERNAL, ''),
      reads: () => false,
      idempotent: () => false,
    },
  ],
  [
    'watch',
    {
      max_run_s: 86_400,
      check: (values) => [...checkShape(values, WATCH, ''), ...checkWatch(values)],
      reads: () => true,
      idempotent: () => true,
    },
  ],
  [
    'noop',
    { max_run_s: 600, check: (values) => checkShape(values, NOOP, ''), reads: () => true, idempotent: () => true },
  ],
])

/** Which programs the policy of the executors lets steps run: why these arguments do not fit, `args` only when all are known. */
export type ProgramRules = (program: string, args: readonly string[] | undefined) => Fault | undefined

/** What of a program run the policy would refuse; what only dispatch knows is asked there. */
export const programFault = (executor: string, values: unknown, rules: ProgramRules): Fault | undefined => {
  if (executor !== 'command' || !isObject(values) || typeof values.program !== 'string') return undefined
  const args = values.args ?? []
  const known = Array.isArray(args) && !args.some(isOpen)
  return rules(values.program, known ? args.map(String) : undefined)
}

/** A form such as {"$from": …} that is not resolved yet. */
const isOpen = (value: unknown): boolean => isObject(value) && Object.keys(value).some((key) => key.startsWith('$'))

const checkShape = (values: Record<string, unknown>, shape: Shape, at: string): Fault[] => {
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
      else if (rule.shape && isObject(value)) faults.push(...checkShape(value, rule.shape, pointer))
    }
  }
  return faults
}

const faultOf = (value: unknown, rule: Shape[string]): string | undefined => {
  const { kind, min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY, one_of } = rule
  if (kind === 'text' || kind === 'cel') {
    if (typeof value !== 'string') return 'must be a text'
    if (one_of && !one_of.includes(value)) return `must be one of ${one_of.join(', ')}`
    return kind === 'cel' ? celFault(value) : undefined
  }
  if (kind === 'number')
    return typeof value === 'number' && value >= min && value <= max
      ? undefined
      : `must be a number from ${min} to ${max}`
  if (kind === 'object') return isObject(value) ? undefined : 'must be an object'
  if (kind === 'list') return Array.isArray(value) ? undefined : 'must be a list'
  return undefined
}

const celFault = (source: string): string | undefined => {
  try {
    compileCel(source, ['response'])
    return undefined
  } catch (error) {
    if (error instanceof CelError) return `is not an expression over response: ${error.message}`
    throw error
  }
}

const MAX_ITEMS = 100
const MAX_NAME = 100
const isCode = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255

/** The members of lists and objects; which arguments a program takes is the policy's to say. */
const checkCommand = ({ args, env, files, exit_codes }: Record<string, unknown>): Fault[] => {
  const faults: Fault[] = []
  const each = (list: unknown, pointer: string, fits: (value: unknown) => boolean, message: string) => {
    if (!Array.isArray(list)) return
    if (list.length > MAX_ITEMS) faults.push({ pointer, message: `has more than ${MAX_ITEMS} items` })
    const wrong = list.findIndex((value) => !isOpen(value) && !fits(value))
    if (wrong >= 0) faults.push({ pointer: `${pointer}/${wrong}`, message })
  }
  const shown = Array.isArray(args) ? args.findIndex((value) => isObject(value) && '$secret' in value) : -1
  if (shown >= 0)
    faults.push({
      pointer: `/args/${shown}`,
      message: 'is seen by everybody on the machine: give a secret in env, files or stdin',
    })
  each(args, '/args', (value) => typeof value === 'string' || Number.isFinite(value), 'must be a text or a number')
  const codes = isObject(exit_codes) && !isOpen(exit_codes) ? exit_codes : {}
  for (const name of ['ok', 'retry']) each(codes[name], `/exit_codes/${name}`, isCode, 'must be a number from 0 to 255')
  for (const [at, given] of [
    ['/env', env],
    ['/files', files],
  ] as const) {
    if (!isObject(given) || isOpen(given)) continue
    const entries = Object.entries(given)
    if (entries.length > MAX_ITEMS) faults.push({ pointer: at, message: `has more than ${MAX_ITEMS} members` })
    for (const [name, value] of entries.slice(0, MAX_ITEMS))
      if (name.length > MAX_NAME || (!isOpen(value) && typeof value !== 'string'))
        faults.push({ pointer: `${at}${pointerOf(name)}`, message: 'must be a text with a short name' })
  }
  return faults
}

const checkHttp = (values: Record<string, unknown>): Fault[] => {
  const faults: Fault[] = []
  const poll = isObject(values.poll) ? values.poll.request : undefined
  for (const [at, request] of [
    ['/request', values.request],
    ['/poll/request', poll],
  ] as const) {
    if (!isObject(request) || typeof request.url !== 'string') continue
    const absolute = /^https?:\/\//.test(request.url)
    if (!absolute && !request.url.startsWith('/'))
      faults.push({ pointer: `${at}/url`, message: 'must be an http or https address, or a path that starts with /' })
    if (!absolute && values.base_url === undefined)
      faults.push({ pointer: `${at}/url`, message: 'is a path, but there is no base_url' })
  }
  return faults
}

/** Each check is a probe or a query with a bound; names are unique, for the samples are told by them. */
const checkWatch = ({ checks, for_s, every_s }: Record<string, unknown>): Fault[] => {
  const faults: Fault[] = []
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
        ...checkShape(check, probe ? PROBE : QUERY, pointer),
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
    faults.push({ pointer: `${pointer}/request/method`, message: 'must be GET or HEAD: a probe has no effect' })
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
