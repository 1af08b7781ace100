import { CARRY_OUT } from '../../shared/contracts/engine/jobs.ts'
import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import { faultsInJob } from '../../shared/expressions/job-inputs.ts'
import { isConnectionHeader } from '../../shared/web/headers.ts'
import { checkShape, type Fault, isOpen, REQUEST, type Shape } from './shape.ts'
import { checkWatch } from './watch.ts'

/** The facts that the planner needs about an executor to refuse a step that could never run (operations.md 7). */
export type ExecutorFacts = {
  max_run_s: number
  /** Returns reasons why `with` is invalid, each with its pointer. Values known only at dispatch are always valid. */
  check: (values: Record<string, unknown>) => Fault[]
  /** Whether a step only reads, so that it has no effect to undo. */
  reads: (values: Record<string, unknown>) => boolean
  idempotent: (values: Record<string, unknown>) => boolean
}

/** A reference to a secret: its value never appears in a plan. */
export const SECRET = /^secret:\/\/[a-z][a-z0-9-]{0,30}\/[A-Za-z0-9][A-Za-z0-9._/-]{0,127}#[A-Za-z0-9._-]{1,64}$/

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])
const REPEATABLE = new Set([...SAFE, 'PUT', 'DELETE'])

const HTTP: Shape = {
  base_url: { kind: 'text' },
  headers: { kind: 'headers' },
  request: { kind: 'object', required: true, shape: REQUEST },
  expect: { kind: 'cel' },
  fail_if: { kind: 'cel' },
  reason: { kind: 'text' },
  sign: {
    kind: 'object',
    shape: { secret: { kind: 'text', required: true }, header: { kind: 'text', required: true } },
  },
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
  /** How old the preview that it carries out may be when it starts. */
  max_age_s: { kind: 'number', min: 300, max: 604_800 },
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
      check: (values) => [...checkShape(values, EXTERNAL, ''), ...checkExternal(values)],
      reads: () => false,
      idempotent: () => false,
    },
  ],
  ['watch', { max_run_s: 86_400, check: (values) => checkWatch(values), reads: () => true, idempotent: () => true }],
  [
    'noop',
    { max_run_s: 600, check: (values) => checkShape(values, NOOP, ''), reads: () => true, idempotent: () => true },
  ],
])

/** Agents state their labels as texts. */
const checkExternal = (values: Record<string, unknown>): Fault[] => {
  const labels = isObject(values.labels) && !isOpen(values.labels) ? Object.entries(values.labels) : []
  const odd = labels.filter(([, value]) => typeof value !== 'string' && !isOpen(value))
  return [
    ...odd.map(([name]) => ({ pointer: `/labels${pointerOf(name)}`, message: 'must be a string' })),
    ...checkInputs(values),
  ]
}

/** A preview that is put together in the plan would be carried out without a gate that shows the whole of it. */
const checkInputs = ({ job, inputs = {} }: Record<string, unknown>): Fault[] => {
  if (!isObject(inputs)) return []
  const faults = isOpen(inputs) ? [] : faultsInJob(job, inputs, isOpen)
  if (faults.length > 0) return faults.map(({ pointer, message }) => ({ pointer: `/inputs${pointer}`, message }))
  if (sourceOf(inputs)?.startsWith('params/')) return []
  if (isOpen(inputs))
    return [{ pointer: '/inputs', message: 'must name each input, or come from "params/…": one may be a preview' }]
  const { preview } = inputs
  if ((preview ?? null) === null && CARRY_OUT.has(String(job)))
    return [{ pointer: '/inputs/preview', message: `is required: ${job} only carries out a preview` }]
  const made = isObject(preview) || Array.isArray(preview)
  if (!made || sourceOf(preview) !== undefined) return []
  return [{ pointer: '/inputs/preview', message: 'must be one {"$from": "nodes/<node>/outputs/<output>"}' }]
}
/** The source of a value that is one whole `$from`. */
const sourceOf = (value: unknown): string | undefined =>
  isObject(value) && typeof value.$from === 'string' && Object.keys(value).length === 1 ? value.$from : undefined

/** Programs the executors' policy lets steps run. Returns why arguments do not fit; `args` only if all are known. */
export type ProgramRules = (program: string, args: readonly string[] | undefined) => Fault | undefined

/** Returns the fault for which the policy would refuse a program; values known only at dispatch are checked there. */
export const programFault = (executor: string, values: unknown, rules: ProgramRules): Fault | undefined => {
  if (executor !== 'command' || !isObject(values) || typeof values.program !== 'string') return undefined
  const args = values.args ?? []
  const known = Array.isArray(args) && !args.some(isOpen)
  return rules(values.program, known ? args.map(String) : undefined)
}

const MAX_ITEMS = 100
const MAX_NAME = 100
const isCode = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255

/** Checks the members of lists and objects; the policy decides which arguments a program takes. */
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
      message: 'is visible to everyone on the machine: pass a secret in env, files or stdin',
    })
  each(args, '/args', (value) => typeof value === 'string' || Number.isFinite(value), 'must be a string or a number')
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
        faults.push({ pointer: `${at}${pointerOf(name)}`, message: 'must be a short name' })
  }
  return faults
}

const HEADER = /^[A-Za-z0-9-]{1,100}$/

const checkHttp = (values: Record<string, unknown>): Fault[] => {
  const faults: Fault[] = []
  const { secret, header } = isObject(values.sign) ? values.sign : {}
  // Everyone who reads the plan would know it.
  if (typeof secret === 'string') faults.push({ pointer: '/sign/secret', message: 'must be {"$secret": name}' })
  if (typeof header === 'string' && (!HEADER.test(header) || isConnectionHeader(header)))
    faults.push({ pointer: '/sign/header', message: 'must be the name of a header' })
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
