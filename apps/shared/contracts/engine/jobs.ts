import Type, { type TProperties, type TSchema } from 'typebox'
import { Closed } from '../shapes.ts'

/**
 * The inputs of each job of `signalbox agent` (apps/cli/agent/README.md, "Jobs"). A description completes the sentence
 * `"member" must be …`. Which members a job needs, and their rules, are the job's own.
 */
const Text = Type.String({ description: 'a string' })
const Amount = Type.Number({ description: 'a number' })
const Seconds = Type.Integer({ minimum: 0, maximum: 3600, description: 'a number of seconds from 0 to 3600' })
const Flag = Type.Boolean({ description: 'true or false' })
const Any = Type.Unknown()
const Values = Type.Record(Type.String(), Any, { description: 'an object' })
const Texts = Type.Array(Text, { description: 'a list of strings' })
const Args = Type.Array(Type.Union([Text, Amount, Flag], { description: 'a string or a number' }), {
  description: 'a list',
})
const optional = (members: Record<string, TSchema>): TProperties =>
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)]))
const group = (members: Record<string, TSchema>, description = 'an object') =>
  Closed(optional(members), { description })

const REACHED = { address: Text, port: Amount, user: Text, host_keys: Texts }
const COMMAND = { program: Text, args: Args, stdin: Text, timeout_s: Amount }
const Parallel = Type.Integer({ minimum: 1, maximum: 256, description: 'a number from 1 to 256' })
const MODULE = {
  ...{ source: Text, ref: Text, workspace: Text, backend: Values, variables: Values, var_files: Texts },
  ...{ parallelism: Parallel, destroy: Flag },
}
const PLAN = { ...MODULE, targets: Texts, replace: Texts }
const COMMIT = { repo: Text, base: Text, branch: Text, files: Values, message: Text }
const PLAY = {
  ...{ source: Text, ref: Text, playbook: Text, extra_vars: Values, limit: Texts, forks: Amount, timeout_s: Amount },
  inventory: group({
    hosts: Type.Record(Type.String(), Type.Union([group({ ...REACHED, vars: Values }), Type.Null()]), {
      description: 'an object',
    }),
    groups: Type.Record(Type.String(), Texts, { description: 'an object' }),
  }),
}
const SET = {
  ...{ cluster: Text, namespace: Text, set: Text, source: Text, ref: Text, path: Text, render: Text, values: Values },
  ...{ objects: Type.Array(Any, { description: 'a list' }), conflicts: Text, prune: Flag },
  ...{ prune_kinds: Texts, noise: Texts, sensitive: Texts },
}
const APPLIED = {
  preview: Any,
  wait: Type.Union([Type.Literal(false), group({ timeout_s: Amount, ready_if: Values })], {
    description: 'an object of timeout_s and ready_if, or false',
  }),
}

const INPUTS: Record<string, Record<string, TSchema>> = {
  // The preview of an own program: the gate that shows it binds the step.
  command: { ...COMMAND, preview: Any },
  ssh: { ...COMMAND, host: group(REACHED), exit_codes: Type.Array(Amount, { description: 'a list of numbers' }) },
  'opentofu.preview': PLAN,
  'opentofu.apply': { ...PLAN, preview: Any, lock_wait_s: Seconds },
  'opentofu.drift': MODULE,
  'opentofu.lock': MODULE,
  'opentofu.unlock': { ...MODULE, preview: Any, lock_id: Text },
  'git.preview': COMMIT,
  'git.push': { ...COMMIT, preview: Any },
  'git.merge': { repo: Text, branch: Text, into: Text, commit: Text, message: Text },
  'ansible.preview': PLAY,
  'ansible.run': { ...PLAY, preview: Any, max_failures: Amount },
  'kubernetes.preview': SET,
  'kubernetes.apply': { ...SET, ...APPLIED },
  'kubernetes.undo': { ...SET, ...APPLIED },
}

/** The jobs that need a preview. */
export const CARRY_OUT: ReadonlySet<string> = new Set([
  ...['opentofu.apply', 'git.push', 'kubernetes.apply', 'kubernetes.undo'],
])

/** A job that carries out a preview takes the inputs of that one too, so that both may be one anchor of a file. */
export const JOB_INPUTS: ReadonlyMap<string, TSchema> = new Map(
  Object.entries(INPUTS).map(([job, members]) => [job, Closed(optional({ ...members, credentials: Text }))]),
)
