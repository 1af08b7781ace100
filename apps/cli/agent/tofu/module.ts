import { chownSync, existsSync, lchownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { digest } from '../../../shared/data/digest.ts'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { isObject, objectIn } from '../../../shared/data/pointer.ts'
import { parseDigits } from '../../../shared/run/exact.ts'
import { readPlain } from '../../../shared/run/plain.ts'
import { type Approved, type Taken, takeSource } from '../tools/checkout.ts'
import { named } from '../tools/file.ts'
import { pathTo } from '../tools/source.ts'
import { Ended, failed, isDone, type Job, refusal, runTool, stopped } from '../tools/types.ts'
import { cacheOf, keepProviders, offerProviders } from './providers.ts'
import { MODULE } from './unsaved.ts'

/** A root module of OpenTofu or Terraform in the sandbox of one attempt, with the tool to run in it. */
export type Module = {
  /** Runs the tool; `code` is its exit code. Throws a Verdict if it was stopped from outside. */
  tofu: (args: string[], options?: { quiet?: boolean; log?: Job['log'] }) => Promise<{ code: number; out: string }>
  dir: string
  taken: Taken
  /** Which state it has: the approved one, or none. */
  place: Place
  /** Options that the inputs ask for: of a plan and of an apply, and of a plan alone. */
  parallel: string[]
  vars: string[]
  /** Where the agent's file keeps the state, if it sets a place. */
  state_file: string | undefined
}

const GRACE_S = 120
/** `digest` is over the rest, which readers see masked. */
export type Place = { source: string; workspace: string; backend: Record<string, string>; digest: string }

const VARIABLES = 'zz_signalbox.auto.tfvars.json'
const VAR_FILE = pathTo('\\.tfvars(\\.json)?')
const WORKSPACE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,89}$/
const SKIPPED = /^(\.terraform|\.git|.*\.tfstate(\..*)?)$/
/** `show -json` is one line, and so are the outputs of `apply -json`. */
const MAX_JSON = 64 * 1024 * 1024

const MAX_SAID = 4000
/** Commands that carry out a job; the others prepare it or look at its result. */
const CARRYING = new Set(['plan', 'apply', 'force-unlock'])
/** Commands whose effect is unknown if they are stopped. */
const ACTING = new Set(['apply', 'force-unlock'])
const LOCKED =
  'A provider is not the one that the lock file of the source names. No change was made. Compare the mirror with .terraform.lock.hcl.'

/** Replaces a link of the source instead of following it. */
const writeNew = (path: string, text: string): void => {
  rmSync(path, { recursive: true, force: true })
  writeFileSync(path, text, { flag: 'wx' })
}

/** Providers come from this folder, never a registry; the source's lock file proves their hashes. */
const mirrorOnly = (path: string): string =>
  `provider_installation {\n  filesystem_mirror {\n    path = ${JSON.stringify(path)}\n  }\n}\n`

/**
 * Brings the named source, at the commit of the preview if one is given; initializes it and selects the workspace. Only
 * a preview `makes` a missing one: the other jobs follow it, or change no backend. All files of the agent, such as the one
 * with the variables, come before any program of the job could turn their names into links.
 */
export const openModule = async (
  job: Job,
  {
    plans = false,
    makes = false,
    preview,
  }: { plans?: boolean; makes?: boolean; preview?: (Approved & { place?: Place }) | undefined } = {},
): Promise<Module> => {
  const { tofu: rules, uid } = job.file
  const { source, workspace = 'default', parallelism, ...asked } = job.work.inputs as Record<string, unknown>
  const found = named(rules?.sources, source)
  if (!rules || !found) throw refusal(`The agent's file names no source "${source}".`)
  if (typeof workspace !== 'string' || !WORKSPACE.test(workspace))
    throw refusal('"workspace" must consist of letters, digits and ._-.')
  const backend = chosenIn(found.backend, asked.backend, source)
  const where = { source: String(source), workspace, backend }
  const place = { ...where, digest: digest(where) }
  if (preview?.place && preview.place.digest !== place.digest)
    throw refusal('The preview was made for another source, workspace or backend. Give both steps the same.')
  const dir = join(job.folder, MODULE)
  const taken = await takeSource(job, { name: String(source), found, skipped: SKIPPED }, dir, preview)
  const state_file = found.state === undefined ? undefined : join(found.state, `${workspace}.tfstate`)
  if (found.state !== undefined) {
    // A sandbox can only show what is there. A job might have replaced it by a link in the meantime.
    if (mkdirSync(found.state, { recursive: true }) !== undefined && uid) lchownSync(found.state, uid, uid)
    const local = { terraform: { backend: { local: { path: state_file } } } }
    writeNew(join(dir, 'signalbox_override.tf.json'), JSON.stringify(local))
  }
  const vars = plans ? varsOf(dir, asked) : []
  const cache = offerProviders(job)
  const rc = join(job.folder, 'tofurc')
  writeFileSync(rc, rules.providers === undefined ? '' : mirrorOnly(rules.providers))
  if (uid) chownSync(rc, uid, uid)
  const env = {
    ...{ TF_IN_AUTOMATION: '1', TF_INPUT: '0', CHECKPOINT_DISABLE: '1', TF_CLI_CONFIG_FILE: rc },
    ...{ TF_PLUGIN_CACHE_DIR: cache, TF_DATA_DIR: join(job.home, 'data') },
  }
  const tofu: Module['tofu'] = async (args, { quiet = false, log = job.log } = {}) => {
    let out = ''
    const take: Job['log'] = (text, line) => {
      if (line?.stream === 'stdout') out += `${text}\n`
      if (!quiet || line?.stream === 'stderr') log(text, line)
    }
    const acts = ACTING.has(String(args[0]))
    const end = await runTool(job, {
      ...{
        alone: acts,
        aside: !CARRYING.has(String(args[0])),
        path: rules.program,
        args,
        cwd: dir,
        env,
        grace_s: rules.grace_s ?? GRACE_S,
        log: take,
        max_line: MAX_JSON,
        read: [cacheOf(job), ...(rules.providers === undefined ? [] : [rules.providers])],
        write: found.state === undefined ? [] : [found.state],
      },
    })
    const other = acts && isDone(end) ? undefined : stopped(end, `${basename(rules.program)} ${args[0]}`, !acts)
    if (other) throw new Ended(other)
    return { code: end.how === 'not_begun' ? 1 : (end.code ?? 1), out }
  }
  const lock_file = join(dir, '.terraform.lock.hcl')
  const proven = existsSync(lock_file) ? readFileSync(lock_file, 'utf8') : ''
  const lock = proven === '' ? [] : ['-lockfile=readonly']
  let said = ''
  const settings = Object.entries({ ...fixedIn(found.backend), ...backend })
  const given = settings.map(([name, value]) => `-backend-config=${name}=${value}`)
  const init = await tofu(['init', '-no-color', '-input=false', ...lock, ...given], {
    log: (text, line) => {
      said = `${said} ${text}`.slice(-MAX_SAID)
      job.log(text, line)
    },
  })
  if (init.code !== 0 && /checksums|lock file|dependency lock/i.test(said))
    throw new Ended(failed('provider_lock', LOCKED))
  if (init.code !== 0) throw new Ended(failed('tool_failed', 'init failed: see the log. No change was made.'))
  keepProviders(job, cache, proven)
  if (!found.state && workspace !== 'default') {
    const { code } = await tofu(['workspace', 'select', '-no-color', ...(makes ? ['-or-create'] : []), workspace])
    if (code !== 0) {
      const none = `The backend has no workspace "${workspace}", or it cannot be read`
      throw new Ended(failed('tool_failed', `${makes ? 'workspace failed' : none}: see the log. No change was made.`))
    }
  }
  const parallel = parallelism === undefined ? [] : [`-parallelism=${parallelism}`]
  return { tofu, dir, taken, place, parallel, vars, state_file }
}

/** The backend's settings that are the agent's alone: they may be secret, so no preview has them. */
const fixedIn = (allowed: Record<string, string> = {}): Place['backend'] =>
  Object.fromEntries(Object.entries(allowed).filter(([, pattern]) => !pattern.includes('*')))

/** Those that the step chose, where the agent's file has `*`, or repeated. */
const chosenIn = (allowed: Record<string, string> = {}, given: unknown, source: unknown): Place['backend'] => {
  const asked = Object.entries(isObject(given) ? given : {}).filter(([, value]) => value !== null)
  const chosen = asked.map(([name, value]): [string, string] => {
    const pattern = Object.hasOwn(allowed, name) ? allowed[name] : undefined
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    if (pattern === undefined || !matcherOf(pattern)(text) || text.split('/').includes('..'))
      throw refusal(`The agent's file allows no "${name}" = "${text}" for the backend of "${source}".`)
    return [name, text]
  })
  return Object.fromEntries(chosen.filter(([name]) => allowed[name]?.includes('*')))
}

/** Writes the variables of the step. They count above those of `var_files`, of which the last one counts. */
const varsOf = (dir: string, { variables = {}, var_files = [] }: Record<string, unknown>): string[] => {
  for (const path of var_files as unknown[])
    if (typeof path !== 'string' || !VAR_FILE.test(path) || !existsSync(join(dir, path)))
      throw refusal(`The source has no file "${path}" of variables: "var_files" are its .tfvars and .tfvars.json.`)
  writeNew(join(dir, VARIABLES), JSON.stringify(variables))
  const files = var_files as string[]
  return files.length === 0 ? [] : [...files, VARIABLES].map((path) => `-var-file=${path}`)
}

/** The current state; `undefined` if there is none. Reads a state file directly, because starting the tool is slow. */
export const stateOf = async ({ tofu, state_file }: Module): Promise<Record<string, unknown> | undefined> => {
  if (state_file !== undefined) {
    const read = await readPlain(state_file, MAX_JSON)
    if (read === undefined) return undefined
    const state = read === 'unfit' ? undefined : stateIn(read.toString())
    if (state) return state
  }
  const { code, out } = await tofu(['state', 'pull'], { quiet: true })
  if (code !== 0) throw new Ended(failed('tool_failed', 'The state cannot be read. No change was made.'))
  if (out.trim() === '') return undefined
  const state = stateIn(out)
  if (!state) throw new Ended(failed('tool_failed', 'The state is not a JSON object with a serial.'))
  return state
}

/** Only the tool can read a state that is encrypted or being written at this moment. */
const stateIn = (text: string): Record<string, unknown> | undefined => {
  const state = objectIn(text, parseDigits)
  return typeof state?.serial === 'number' ? state : undefined
}

export type Base = { lineage: string | null; serial: number }

/** The current lineage and serial of the state. */
export const baseOf = async (module: Module): Promise<Base> => {
  const state = await stateOf(module)
  return state ? { lineage: String(state.lineage), serial: Number(state.serial) } : { lineage: null, serial: 0 }
}
