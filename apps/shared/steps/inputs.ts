import { isObject, pointerOf } from '../data/pointer.ts'
import { inexactIn } from '../expressions/job-inputs.ts'
import { connectionHeader, isConnectionHeader } from '../web/headers.ts'
import { checkShape, type Fault, type IsOpen, REQUEST, type Shape } from './shape.ts'
import { checkWatch } from './watch.ts'

type Values = Record<string, unknown>

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
const ARTIFACT: Shape = {
  name: { kind: 'text', required: true },
  kind: { kind: 'text', required: true },
  media_type: { kind: 'text', required: true },
  pointer: { kind: 'text', required: true },
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

const RULES: ReadonlyMap<string, (values: Values, isOpen: IsOpen) => Fault[]> = new Map([
  ['http', (values, isOpen) => [...checkShape(values, HTTP, '', isOpen), ...checkHttp(values, isOpen)]],
  ['command', (values, isOpen) => [...checkShape(values, COMMAND, '', isOpen), ...checkCommand(values, isOpen)]],
  ['external', (values, isOpen) => checkShape(values, EXTERNAL, '', isOpen)],
  ['watch', checkWatch],
  ['noop', (values, isOpen) => checkShape(values, NOOP, '', isOpen)],
])

/**
 * Returns why an executor does not take these values. The planner asks with the values that it knows, the worker with
 * all of them just before the work: an output of another node may be anything.
 */
export const faultsInStep = (executor: string, values: Values, isOpen: IsOpen = () => false): Fault[] => [
  ...(RULES.get(executor)?.(values, isOpen) ?? []),
  ...[...inexactIn(values)].map((fault) => ({ ...fault, taken: true as const })),
]

const MAX_ITEMS = 100
const MAX_NAME = 100
const isCode = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255

/** Checks the members of lists and objects; the policy decides which arguments a program takes. */
const checkCommand = ({ args, env, files, exit_codes }: Values, isOpen: IsOpen): Fault[] => {
  const faults: Fault[] = []
  const each = (list: unknown, pointer: string, fits: (value: unknown) => boolean, message: string) => {
    if (!Array.isArray(list)) return
    if (list.length > MAX_ITEMS) faults.push({ pointer, message: `has more than ${MAX_ITEMS} items`, taken: true })
    const wrong = list.findIndex((value) => !isOpen(value) && !fits(value))
    if (wrong >= 0) faults.push({ pointer: `${pointer}/${wrong}`, message })
  }
  const isWord = (value: unknown) => ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)
  each(args, '/args', isWord, 'must be a string, a number, true or false')
  const codes = isObject(exit_codes) && !isOpen(exit_codes) ? exit_codes : {}
  for (const name of ['ok', 'retry']) each(codes[name], `/exit_codes/${name}`, isCode, 'must be a number from 0 to 255')
  for (const [at, given] of [
    ['/env', env],
    ['/files', files],
  ] as const) {
    if (!isObject(given) || isOpen(given)) continue
    const entries = Object.entries(given)
    if (entries.length > MAX_ITEMS)
      faults.push({ pointer: at, message: `has more than ${MAX_ITEMS} members`, taken: true })
    for (const [name, value] of entries)
      if (name.length > MAX_NAME || (!isOpen(value) && typeof value !== 'string'))
        faults.push({
          pointer: `${at}${pointerOf(name)}`,
          message: `must be a string with a name of at most ${MAX_NAME} characters`,
        })
  }
  return faults
}

const HEADER = /^[A-Za-z0-9-]{1,100}$/

const checkHttp = (values: Values, isOpen: IsOpen): Fault[] => {
  const faults: Fault[] = []
  const { header } = isObject(values.sign) ? values.sign : {}
  if (typeof header === 'string' && isConnectionHeader(header))
    faults.push({ pointer: '/sign/header', message: connectionHeader(header) })
  else if (typeof header === 'string' && !HEADER.test(header))
    faults.push({ pointer: '/sign/header', message: 'must be the name of a header' })
  const poll = isObject(values.poll) ? values.poll.request : undefined
  const artifacts = Array.isArray(values.artifacts) ? values.artifacts : []
  for (const [i, artifact] of artifacts.entries()) {
    if (isOpen(artifact)) continue
    // Other members, such as a title, were always allowed.
    if (isObject(artifact))
      faults.push(...checkShape(artifact, ARTIFACT, `/artifacts/${i}`, isOpen).filter(({ taken }) => !taken))
    else faults.push({ pointer: `/artifacts/${i}`, message: 'must be an object' })
  }
  for (const [at, request] of [
    ['/request', values.request],
    ['/poll/request', poll],
  ] as const) {
    if (!isObject(request) || typeof request.url !== 'string') continue
    const absolute = /^https?:\/\//i.test(request.url)
    if (!absolute && !request.url.startsWith('/'))
      faults.push({ pointer: `${at}/url`, message: 'must be an http or https address, or a path that starts with /' })
    if (!absolute && values.base_url === undefined)
      faults.push({ pointer: `${at}/url`, message: 'is a path, but there is no base_url' })
  }
  return faults
}
