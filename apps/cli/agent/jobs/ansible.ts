import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Value } from 'typebox/value'
import { CheckRun, type PreviewChange } from '../../../shared/contracts/client/preview.ts'
import { digest } from '../../../shared/data/digest.ts'
import { objectIn } from '../../../shared/data/pointer.ts'
import { type Taken, takeSource } from '../tools/checkout.ts'
import { createDiff } from '../tools/diff.ts'
import { named } from '../tools/file.ts'
import { sshOptions, writeOwn } from '../tools/host.ts'
import { fitting, pictureOf } from '../tools/picture.ts'
import { noteVersion } from '../tools/program.ts'
import { pathTo } from '../tools/source.ts'
import {
  failed,
  inForce,
  type Job,
  refusedBy,
  runTool,
  stale,
  stopped,
  type Tool,
  type Verdict,
} from '../tools/types.ts'
import { CALLBACK } from './callback.ts'
import { inventoryOf, varsOf, yamlOf } from './inventory.ts'

const PLAYBOOK = pathTo('\\.ya?ml')
const SKIPPED = /^\.git$/
const GRACE_S = 15
const MAX_LINE = 64 * 1024 * 1024
const MAX_UNFORESEEN = 200
const MAX_NAMED = 10
/** Of the 256 KiB that outputs may have: some thousand hosts. */
const MAX_HOSTS_SHOWN = 150_000
/** Of the 16 KiB that an attempt may leave for the next one; of more hosts, all run again. */
const MAX_LEFT = 15_000

type Counts = { ok: number; changed: number; failed: number; unreachable: number; skipped: number }
/** The state gathered from the events of one run. */
type Told = {
  hosts: Record<string, Counts>
  faults: Map<string, string>
  /** Tasks in flight, by host. */
  running: Map<string, string>
  begun: boolean
  /** The hosts of its plays. After a failure, "serial" leaves out those that were not reached. */
  planned: Set<string>
  /** A failure ended a play for all hosts, as "any_errors_fatal" does. */
  early: boolean
  /** A run limited to some hosts may leave out what their success needs: a play without hosts, or hosts that others add. */
  whole: boolean
  /** Plays that did not begin: Ansible ends the playbook with the last host of any play. */
  unbegun: number
  changes: PreviewChange[]
  unforeseen: string[]
  /** The last output that is not an event. */
  said: string
}
type Ready = {
  args: string[]
  dir: string
  env: Record<string, string>
  taken: Taken
  names: string[]
  inputs_digest: string
  /** Of all that a retry must share with this attempt to leave out the hosts that are done. */
  resume_digest: string
}

/** Writes the files that Ansible reads: the source, the inventory, the variables and the plugin. */
const prepare = async (job: Job, preview?: CheckRun): Promise<Ready | Verdict> => {
  const { source, playbook, inventory, extra_vars = {}, limit, forks = 5 } = job.work.inputs as Record<string, unknown>
  const inputs_digest = digest({ source, playbook, inventory, extra_vars, limit: limit ?? null })
  const found = named(job.file.ansible?.sources, source)
  if (!found) return refusedBy(`The agent's file names no source "${source}" of playbooks.`)
  if (typeof playbook !== 'string' || !PLAYBOOK.test(playbook))
    return refusedBy('"playbook" must be the path of a .yml file in the source.')
  if (!Number.isInteger(forks) || Number(forks) < 1 || Number(forks) > 100) return refusedBy('"forks" is 1 to 100.')
  const { text, keys, names } = inventoryOf(job, found.vars ?? {})
  if (limit !== undefined && !areOf(limit, names)) return refusedBy('"limit" must be a list of hosts of the inventory.')
  const vars = yamlOf(varsOf(extra_vars, 'extra_vars'))
  const dir = join(job.folder, 'source')
  const taken = await takeSource(job, { name: String(source), found, skipped: SKIPPED }, dir, preview)
  if (!existsSync(join(dir, playbook))) return refusedBy(`The source "${source}" has no playbook "${playbook}".`)
  const plugins = join(job.folder, 'plugins')
  mkdirSync(plugins, { mode: 0o755 })
  writeOwn(job, 'plugins/signalbox.py', CALLBACK)
  const hosts = writeOwn(job, 'inventory.yml', text)
  const extra = writeOwn(job, 'vars.yml', `${vars}\n`)
  const resume_digest = digest({ inputs_digest, source_digest: taken.source_digest, preview: preview ?? null })
  const left = leftBy(job, resume_digest, limit ?? names)
  if (left) job.log(`Only the hosts that the last attempt left: ${left.join(', ')}.`)
  const only = left ?? limit
  return {
    args: [
      ...['-i', hosts, '-e', `@${extra}`, '--forks', String(forks)],
      ...(only === undefined ? [] : ['--limit', only.join(',')]),
      playbook,
    ],
    env: {
      ...{ ANSIBLE_CALLBACK_PLUGINS: plugins, ANSIBLE_STDOUT_CALLBACK: 'signalbox', ANSIBLE_NOCOLOR: '1' },
      ...{ ANSIBLE_HOME: join(job.home, 'ansible'), ANSIBLE_INVENTORY_ENABLED: 'yaml', PYTHONDONTWRITEBYTECODE: '1' },
      ...{ ANSIBLE_RETRY_FILES_ENABLED: 'False', ANSIBLE_HOST_KEY_CHECKING: 'True' },
      ANSIBLE_SSH_ARGS: sshOptions(job, keys, false).join(' '),
    },
    ...{ dir, taken, names, inputs_digest, resume_digest },
  }
}

/** Without a host it would be no limit; another word could be a pattern, or a file on this machine. */
const areOf = (given: unknown, names: readonly string[]): given is string[] => {
  const known = new Set<unknown>(names)
  return Array.isArray(given) && given.length > 0 && given.every((one) => known.has(one))
}

/** The hosts of these that the last attempt with the same inputs, files and preview has not done. */
const leftBy = ({ work }: Job, resume_digest: string, of: readonly string[]): string[] | undefined => {
  const { resume } = work
  return resume?.resume_digest === resume_digest && areOf(resume.hosts, of) ? resume.hosts : undefined
}

/** Runs the playbook; each event becomes a line of the log that names its host and task. */
const play = async (job: Job, { args, dir, env, names }: Ready, more: string[] = []) => {
  const told: Told = {
    hosts: {},
    faults: new Map(),
    running: new Map(),
    begun: false,
    planned: new Set(),
    early: false,
    whole: false,
    unbegun: 0,
    changes: [],
    unforeseen: [],
    said: '',
  }
  const diffs = new Map<string, ReturnType<typeof createDiff>>()
  const log: Job['log'] = (text, line) => {
    const event = line?.stream === 'stdout' ? eventOf(text) : undefined
    if (event) return take(job, told, diffs, event, names)
    if (text.trim() !== '') told.said = job.mask(text, line)
    job.log(text, line)
  }
  const { timeout_s } = job.work.inputs as Record<string, unknown>
  const end = await runTool(job, {
    ...{ path: job.file.ansible?.program ?? '', args: [...more, ...args], cwd: dir, env, grace_s: GRACE_S, log },
    ...{ max_line: MAX_LINE, ...(typeof timeout_s === 'number' && { timeout_s }) },
  })
  return { end, told }
}

const eventOf = (text: string): Record<string, unknown> | undefined => {
  const value = text.startsWith('{') ? objectIn(text) : undefined
  return value && 'signalbox' in value ? value : undefined
}

const take = (
  job: Job,
  told: Told,
  diffs: Map<string, ReturnType<typeof createDiff>>,
  event: Record<string, unknown>,
  names: string[],
) => {
  const { signalbox: kind, host = '', task = '', id, changed, message, hidden, conditional, fatal } = event
  const name = `${host}: ${task}`
  const key = `${host} ${id}`
  if (kind === 'version') return noteVersion(job, event.version)
  if (kind === 'none') {
    told.whole = true
    return job.log('No host matches the play.', { level: 'warn' })
  }
  if (kind === 'planned') {
    told.whole ||= !names.includes(String(host))
    return void told.planned.add(String(host))
  }
  if (kind === 'unbegun') {
    told.unbegun = Number(event.count)
    return
  }
  if (kind === 'left') {
    told.early = true
    return job.log('The play ends early: no hosts are left.', { level: 'warn' })
  }
  if (kind === 'start') {
    told.begun = true
    told.running.set(String(host), String(task))
    return
  }
  if (kind === 'diff') {
    const diff = diffs.get(key) ?? createDiff(job.mask)
    diffs.set(key, diff)
    for (const line of event.lines as string[]) diff.read(line)
    return
  }
  if (kind === 'stats') {
    const counts = event.counts as Record<string, number>
    const { ok = 0, changed: moved = 0, failures = 0, unreachable = 0, skipped = 0 } = counts
    told.hosts[String(host)] = { ok, changed: moved, failed: failures, unreachable, skipped }
    return
  }
  told.running.delete(String(host))
  const bad = kind === 'failed' || kind === 'unreachable'
  const words = hidden ? 'hidden by no_log' : job.mask(String(message ?? '')).replace(/\s+/g, ' ')
  if (bad) told.faults.set(String(host), `${kind} at "${task}": ${words}`)
  if (bad && fatal) told.early = true
  if (kind === 'ok' && changed) {
    const change = (diffs.get(key) ?? createDiff(job.mask)).change(name, 'update')
    told.changes.push(hidden ? { ...change, fields: [{ path: '/result', sensitive: true }] } : change)
  }
  diffs.delete(key)
  if (kind === 'skipped' && !conditional) told.unforeseen.push(job.mask(`${name} ${words}`).slice(0, 300))
  const state = kind === 'ok' && changed ? 'changed' : kind
  job.log(`${name}: ${state}${words ? ` (${words})` : ''}`, { level: bad ? 'error' : 'info' })
}

/** What the run says about its hosts: those that failed or changed come first if not all fit; the sums cover them all. */
export const outcomeOf = (hosts: Told['hosts']) => {
  const sums: Counts = { ok: 0, changed: 0, failed: 0, unreachable: 0, skipped: 0 }
  for (const counts of Object.values(hosts))
    for (const name of Object.keys(sums) as (keyof Counts)[]) sums[name] += counts[name]
  const rank = ({ failed, unreachable, changed }: Counts) => (failed + unreachable > 0 ? 0 : changed > 0 ? 1 : 2)
  const all = Object.entries(hosts).sort(([, a], [, b]) => rank(a) - rank(b))
  return { hosts: Object.fromEntries(fitting(all, MAX_HOSTS_SHOWN)), hosts_count: all.length, sums }
}

/**
 * The message that names the failed hosts; `undefined` if no more than `allowed` failed, and the others were done. `left`:
 * all hosts that are not done, if that is known.
 */
const hostsFailed = ({ hosts, faults, planned, early, whole, unbegun }: Told, allowed = 0) => {
  const bad = Object.entries(hosts).filter(([, counts]) => counts.failed + counts.unreachable > 0)
  const missed = [...planned].filter((name) => !Object.hasOwn(hosts, name))
  const all = bad.length <= allowed && missed.length === 0 && !early
  if (unbegun === 0 && (bad.length === 0 || all)) return undefined
  const named = bad.slice(0, MAX_NAMED).map(([name]) => `${name} ${(faults.get(name) ?? 'failed').slice(0, 200)}`)
  const names = [...bad.map(([name]) => name), ...missed]
  const left = !early && !whole && unbegun === 0 && fitting(names, MAX_LEFT).length === names.length ? names : undefined
  const rest = [
    ...(early ? [' The play ended early: other hosts may be half done.'] : []),
    ...(unbegun > 0 ? [` Plays that did not begin: ${unbegun}.`] : []),
    ...(missed.length > 0 ? [` Hosts not reached: ${missed.slice(0, MAX_NAMED).join(', ')}.`] : []),
  ]
  const count = Object.keys(hosts).length + missed.length
  return { left, message: `Failed hosts: ${bad.length} of ${count}. ${named.join('; ')}.${rest.join('')}` }
}

/** `ansible.preview`: runs the playbook in check mode and returns the changes of each task on each host. */
export const previewPlaybook: Tool = async (job) => {
  const ready = await prepare(job)
  if ('status' in ready) return ready
  const { end, told } = await play(job, ready, ['--check', '--diff'])
  const other = stopped(end, 'ansible-playbook', true)
  if (other) return other
  const bad = hostsFailed(told)
  if (bad) return failed('hosts_failed', `${bad.message} No change was made.`)
  if (end.how === 'not_begun' || end.code !== 0 || Object.keys(told.hosts).length === 0)
    return failed('tool_failed', `ansible-playbook failed: ${told.said || 'no host matches'}. No change was made.`)
  const made: CheckRun = {
    ...{ format: 'signalbox/preview@1', binding: 'forecast', tool: 'ansible-playbook --check', drift: 0 },
    ...{ ...ready.taken, inputs_digest: ready.inputs_digest, ...pictureOf(told.changes) },
    unforeseen: told.unforeseen.slice(0, MAX_UNFORESEEN),
    ...(told.unforeseen.length > 0 && { no_change: false }),
  }
  return { status: 'succeeded', outputs: { preview: made } }
}

/** `ansible.run`: runs the playbook. If a preview is given, the source and inputs must match it. */
export const runPlaybook: Tool = async (job) => {
  const { preview, max_failures = 0 } = job.work.inputs as Record<string, unknown>
  if (!Number.isInteger(max_failures)) return refusedBy('"max_failures" must be a number of hosts.')
  if (preview !== undefined && !Value.Check(CheckRun, preview))
    return refusedBy('"preview" is not a preview of ansible: pass the output of its node.')
  const ready = await prepare(job, preview)
  if ('status' in ready) return ready
  if (preview !== undefined && preview.source_digest !== ready.taken.source_digest)
    return stale('The source files changed since this preview.')
  if (preview !== undefined && preview.inputs_digest !== ready.inputs_digest)
    return stale('The inputs differ from those of the preview.')
  const { end, told } = await play(job, ready)
  const other = stopped(end, 'ansible-playbook')
  if (other) {
    const open = [...told.running].slice(0, MAX_NAMED).map(([host, task]) => `"${task}" on ${host}`)
    if (open.length === 0 || !('message' in other)) return other
    const message = `${other.message} These tasks were running and may have taken effect: ${open.join(', ')}.`
    return { status: 'unknown', class: other.class, message }
  }
  const bad = hostsFailed(told, Number(max_failures))
  if (bad)
    return {
      ...{ status: 'failed', class: 'hosts_failed', retryable: false, outputs: outcomeOf(told.hosts) },
      ...(bad.left && { resume: { resume_digest: ready.resume_digest, hosts: bad.left } }),
      message: `${bad.message}${bad.left ? ' A retry runs only these hosts.' : ''}`,
    }
  const over = Object.keys(told.hosts).length > 0
  if (!over && told.begun)
    return { status: 'unknown', class: 'tool_failed', message: `ansible-playbook ended early: ${told.said}` }
  if (!over)
    return failed('tool_failed', `ansible-playbook failed: ${told.said || 'no host matches'}. No change was made.`)
  return { status: 'succeeded', outputs: { ...outcomeOf(told.hosts), catalog: inForce(job) } }
}
