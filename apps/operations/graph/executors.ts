import { CARRY_OUT } from '../../shared/contracts/engine/jobs.ts'
import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import { faultsInJob } from '../../shared/expressions/job-inputs.ts'
import { faultsInStep } from '../../shared/steps/inputs.ts'
import { type Fault, isForm } from '../../shared/steps/shape.ts'

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

const methodOf = (values: Record<string, unknown>): string => {
  const request = values.request
  return isObject(request) && typeof request.method === 'string' ? request.method : 'POST'
}

/** An executor without an effect. */
const reading = (name: string, max_run_s: number): ExecutorFacts => ({
  max_run_s,
  check: (values) => faultsInStep(name, values, isForm),
  reads: () => true,
  idempotent: () => true,
})

/** The executors that this installation runs. */
export const EXECUTORS: ReadonlyMap<string, ExecutorFacts> = new Map([
  [
    'http',
    {
      max_run_s: 86_400,
      check: (values) => [...checkSigning(values), ...faultsInStep('http', values, isForm)],
      reads: (values) => SAFE.has(methodOf(values)),
      idempotent: (values) => REPEATABLE.has(methodOf(values)),
    },
  ],
  [
    'command',
    {
      max_run_s: 600,
      check: (values) => [...faultsInStep('command', values, isForm), ...checkArguments(values)],
      reads: () => false,
      idempotent: () => false,
    },
  ],
  [
    'external',
    {
      max_run_s: 86_400,
      check: (values) => [...faultsInStep('external', values, isForm), ...checkExternal(values)],
      reads: () => false,
      idempotent: () => false,
    },
  ],
  ['watch', reading('watch', 86_400)],
  ['noop', reading('noop', 600)],
])

/** Everyone who reads the plan would know it. */
const checkSigning = ({ sign }: Record<string, unknown>): Fault[] =>
  isObject(sign) && typeof sign.secret === 'string'
    ? [{ pointer: '/sign/secret', message: 'must be {"$secret": name}' }]
    : []

const checkArguments = ({ args }: Record<string, unknown>): Fault[] => {
  const shown = Array.isArray(args) ? args.findIndex((value) => isObject(value) && '$secret' in value) : -1
  if (shown < 0) return []
  const message = 'is visible to everyone on the machine: pass a secret in env, files or stdin'
  return [{ pointer: `/args/${shown}`, message }]
}

/** A message to agents has at most 1 MB; outputs that fill in a preview have at most 256 KiB of it. */
const MAX_INPUTS = 750_000

/** Agents state their labels as texts. */
const checkExternal = (values: Record<string, unknown>): Fault[] => {
  const labels = isObject(values.labels) && !isForm(values.labels) ? Object.entries(values.labels) : []
  const odd = labels.filter(([, value]) => typeof value !== 'string' && !isForm(value))
  return [
    ...odd.map(([name]) => ({ pointer: `/labels${pointerOf(name)}`, message: 'must be a string' })),
    ...checkInputs(values),
  ]
}

/** A preview that is put together in the plan would be carried out without a gate that shows the whole of it. */
const checkInputs = ({ job, inputs = {} }: Record<string, unknown>): Fault[] => {
  if (!isObject(inputs)) return []
  const faults = isForm(inputs) ? [] : faultsInJob(job, inputs, isForm)
  if (faults.length > 0) return faults.map(({ pointer, message }) => ({ pointer: `/inputs${pointer}`, message }))
  if (Buffer.byteLength(JSON.stringify(inputs)) > MAX_INPUTS)
    return [
      { pointer: '/inputs', message: `are longer than ${MAX_INPUTS} bytes: with its preview, the work would not fit` },
    ]
  if (sourceOf(inputs)?.startsWith('params/')) return []
  if (isForm(inputs))
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
  const known = Array.isArray(args) && !args.some(isForm)
  return rules(values.program, known ? args.map(String) : undefined)
}
