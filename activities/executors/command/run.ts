import { constants } from 'node:fs'
import { access, chown, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Program } from '../../../apps/shared/data/programs.ts'
import { endStrays, runProcess } from '../../../apps/shared/run/process.ts'
import { removeTree } from '../../../apps/shared/run/remove.ts'
import { failed } from '../http/send.ts'
import type { ExecutorPolicy } from '../policy.ts'
import type { Executor, ExecutorContext, ExecutorResult } from '../types.ts'
import { collect, FILE_NAME } from './collect.ts'

type With = {
  program: string
  args?: (string | number | boolean)[]
  stdin?: string
  env?: Record<string, string>
  files?: Record<string, string>
  exit_codes?: { ok?: number[]; retry?: number[] }
  timeout_s?: number
}

/**
 * Runs a program that the policy names, never a shell: arguments are a list, and the environment holds only the named
 * variables. The program runs in its own folder. That folder and every process that the program started are removed
 * with it (operations.md 7.3).
 */
export const createCommand = (policy: ExecutorPolicy, worker_env: NodeJS.ProcessEnv): Executor => ({
  name: 'command',
  run: async (context) => {
    const values = context.with as With
    const program = policy.programOf(values.program)
    const refused = await refuse(program, values)
    if (refused !== undefined || !program) return failed('refused', refused ?? NOT_THERE)
    const folder = await mkdtemp(join(tmpdir(), 'signalbox-run-')).catch(unready)
    if (typeof folder !== 'string') return folder
    try {
      const places = await furnish(folder, program, values).catch(unready)
      if ('status' in places) return places
      return await runIn(places, program, values, context, worker_env)
    } finally {
      endStrays(basename(folder))
      try {
        removeTree(folder)
      } catch (error) {
        context.log(`${folder} is left on the worker: ${(error as Error).message}`, { level: 'warn' })
      }
    }
  },
})

const NOT_THERE = 'The executor policy does not name this program.'

/** Returns the reason to refuse that is known before anything begins. */
const refuse = async (program: Program | undefined, values: With): Promise<string | undefined> => {
  if (!program) return `${NOT_THERE.slice(0, -1)}: "${values.program}".`
  const wrong = program.refuse(argsOf(values))
  if (wrong !== undefined) return `${values.program}: ${wrong}.`
  for (const [name, value] of Object.entries(values.env ?? {})) {
    if (!program.env?.includes(name)) return `The variable ${name} must not be set for ${values.program}.`
    if (value.includes('\0')) return `The variable ${name} has a zero byte.`
  }
  for (const name of Object.keys(values.files ?? {}))
    if (!FILE_NAME.test(name)) return `"${name.slice(0, 100)}" is not the name of a file.`
  if (process.getuid?.() === 0 && program.uid === undefined)
    return `The policy must give a uid for ${values.program}, because this worker runs as root.`
  try {
    await access(program.path, constants.X_OK)
  } catch {
    return `${values.program} does not exist or is not executable.`
  }
  return undefined
}

const argsOf = ({ args }: With): string[] => (args ?? []).map(String)

/** No program has run yet, so this failure is certain to have no effect. */
const unready = (error: Error) =>
  failed('refused', `The worker cannot prepare the folder of the program: ${error.message}`, { retryable: true })

const furnish = async (folder: string, program: Program, values: With) => {
  const places = { work: join(folder, 'work'), artifacts: join(folder, 'artifacts'), outputs: join(folder, 'outputs') }
  for (const place of [places.work, places.artifacts]) await mkdir(place)
  for (const [name, text] of Object.entries(values.files ?? {}))
    await writeFile(join(places.work, name), text, { mode: 0o600 })
  await giveTo(program, folder, places.work, places.artifacts, ...(await inside(places.work)))
  return { ...places, mark: basename(folder) }
}
type Places = Awaited<ReturnType<typeof furnish>>

const runIn = async (
  places: Places,
  program: Program,
  values: With,
  context: ExecutorContext,
  worker_env: NodeJS.ProcessEnv,
): Promise<ExecutorResult> => {
  const { end_of_options = true, options = [] } = program
  const timeout_s = Math.min(values.timeout_s ?? context.timeouts.run_s, context.timeouts.run_s)
  const end_at = Math.min(Date.now() + timeout_s * 1000, context.deadline)
  const end = await runProcess({
    path: program.path,
    args: [...options, ...(end_of_options ? ['--'] : []), ...argsOf(values)],
    cwd: places.work,
    env: environmentOf(program, values, context, places, worker_env),
    stdin: values.stdin ?? '',
    mark: places.mark,
    left_ms: () => end_at - Date.now(),
    limits: { cpu_s: timeout_s, memory_mib: program.memory_mib },
    signal: context.signal,
    log: context.log,
    stored: context.stored,
    ...(program.uid !== undefined && { uid: program.uid, gid: program.gid ?? program.uid }),
  })
  const said = verdictOf(end, values, timeout_s)
  return said ?? collect(places, context)
}

const inside = async (folder: string): Promise<string[]> => (await readdir(folder)).map((name) => join(folder, name))

const giveTo = async ({ uid, gid }: Program, ...paths: string[]): Promise<void> => {
  if (uid === undefined) return
  for (const path of paths) await chown(path, uid, gid ?? uid)
}

const environmentOf = (
  { env: names = [] }: Program,
  { env }: With,
  { key, fence }: ExecutorContext,
  places: { work: string; artifacts: string; outputs: string },
  worker_env: NodeJS.ProcessEnv,
): Record<string, string> => {
  const given = names.flatMap((name) => {
    const value = env && Object.hasOwn(env, name) ? env[name] : worker_env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    ...Object.fromEntries(given),
    TMPDIR: places.work,
    SIGNALBOX_OUTPUTS: places.outputs,
    SIGNALBOX_ARTIFACTS: places.artifacts,
    SIGNALBOX_KEY: key,
    SIGNALBOX_FENCE: String(fence),
  }
}

type End = Awaited<ReturnType<typeof runProcess>>

/** Returns the verdict on the process's end; `undefined` if it ended well. */
const verdictOf = (end: End, values: With, timeout_s: number): ExecutorResult | undefined => {
  const { ok, retry } = values.exit_codes ?? {}
  if (end.how === 'not_begun') return failed('refused', `${values.program} could not be started: ${end.message}`)
  if (end.code !== null && (ok ?? [0]).includes(end.code)) return undefined
  if (end.how === 'timeout')
    return { status: 'unknown', class: 'timeout', message: `${values.program} was stopped after ${timeout_s} s.` }
  if (end.how === 'told') return { status: 'unknown', class: 'cancelled', message: 'It was told to stop.' }
  if (end.code === null)
    return { status: 'unknown', class: 'exit_code', message: `${values.program} was killed by ${end.signal}.` }
  return failed('exit_code', `${values.program} exited with code ${end.code}.`, {
    retryable: (retry ?? []).includes(end.code),
  })
}
