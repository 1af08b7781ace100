import { setTimeout as delay } from 'node:timers/promises'
import { Value } from 'typebox/value'
import { ObjectSet } from '../../../shared/contracts/client/preview.ts'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import type { CelProgram } from '../../../shared/expressions/cel.ts'
import { fetchSealed } from '../tools/seal.ts'
import { Ended, failed, type Job, refusal, stale } from '../tools/types.ts'
import { dyingWords, isDying, keptWords, ownedWords } from './check.ts'
import { type Cluster, NoAnswer, wordsOf } from './cluster.ts'
import type { KubeObject } from './fields.ts'
import { deleteAt, type Entry, writeInventory } from './inventory.ts'
import type { Saved } from './preview.ts'
import { type Readiness, readinessOf, rulesOf } from './ready.ts'
import { applyAt, conflictsOf, eachOf, liveAt, type Placed, secretsMask } from './set.ts'

/** One change of a cluster and its progress. */
export type Run = {
  job: Job
  cluster: Cluster
  saved: Saved
  /** The digest of the saved set. */
  content_sha256: string
  /** Masks the data of every Secret of the set, and its values at sensitive paths. */
  mask: (text: string) => string
  /** The changes made so far, in words and in order. */
  done: string[]
  /** A write was sent. */
  begun: boolean
}

/** The end of the work's time that is reserved for the final report. */
const LAST_WORD_MS = 5000
const TRIES = 3
const PAUSE_MS = 1000
const WAIT_S = 600
const MAX_NAMED = 20

/** Opens the approved set, byte for byte, and only for the cluster that checked it. */
export const openSaved = async (job: Job, cluster: Cluster): Promise<Run> => {
  const given = (job.work.inputs as Record<string, unknown>).preview
  if (!Value.Check(ObjectSet, given))
    throw refusal('"preview" is not a preview of kubernetes: pass the output of its node.')
  const saved = JSON.parse((await fetchSealed(job, 'objects', given)).toString()) as Saved
  if (saved.cluster_uid !== cluster.uid)
    throw new Ended(stale(`The cluster "${cluster.name}" is not the one that the preview was made with.`))
  for (const { ref, id } of [...saved.objects, ...saved.prune]) {
    const refused = cluster.refuse(ref.kind, ref.namespace)
    if (refused !== undefined) throw refusal(`${refused} ${id} was not touched.`)
  }
  const before = saved.prune.map(({ previous }) => previous)
  const secrets = [...saved.objects.flatMap(({ object, previous }) => [object, previous]), ...before]
  const { content_sha256 } = given.plan
  if (given.source) job.executed.commit = given.source.commit
  const mask = secretsMask(job, secrets, (saved.sensitive ?? []).map(matcherOf))
  return { job, cluster, saved, content_sha256, mask, done: [], begun: false }
}

const progressOf = ({ done, saved }: Run): string =>
  `Objects done: ${done.length} of ${saved.objects.length + saved.prune.length}${done.length > 0 ? `: ${done.slice(0, MAX_NAMED).join(', ')}` : ''}.`

/** Ends the run with a fault; before the first write, it says that no change was made. */
export const fault = (run: Run, kind: string, words: string): Ended =>
  new Ended(
    run.begun
      ? failed(kind === 'not_ready' ? kind : 'partial', run.mask(`${progressOf(run)} ${words}`), false)
      : kind === 'preview_stale'
        ? stale(run.mask(words))
        : failed(kind, run.mask(`${words} No change was made.`), false),
  )

/** Once an object was written, whatever ends the run says so: neither a refusal nor an error of ours hides it. */
export const toldOf = async <T>(run: Run, act: () => Promise<T>): Promise<T> => {
  run.job.executed.content_sha256 = run.content_sha256
  try {
    return await act()
  } catch (error) {
    if (!run.begun || error instanceof NoAnswer) throw error
    if (!(error instanceof Ended)) {
      const message = run.mask(`${progressOf(run)} ${(error as Error).message}`)
      throw new Ended({ status: 'unknown', class: 'agent_error', message })
    }
    const { verdict } = error
    throw verdict.status === 'failed' && verdict.class === 'refused' ? fault(run, 'refused', verdict.message) : error
  }
}

/** Ends the run if the work must stop or its time is nearly over: between two requests, so no outcome is unknown. */
export const heed = (run: Run): void => {
  const { signal, left_ms } = run.job
  const late = left_ms() < LAST_WORD_MS
  if (signal.aborted) throw new Ended(failed('cancelled', `The work was canceled. ${progressOf(run)}`))
  if (late) throw new Ended(failed('timeout', `The time ran out. ${progressOf(run)}`, false))
}

/** The version that a write is based on ("1" creates an object only if none exists), and whether it is forced. */
export type Basis = { version: string; force: boolean }
export const basisOf = (live: KubeObject | undefined, force = false): Basis => ({
  version: live ? String(live.metadata.resourceVersion) : '1',
  force,
})

/** Deletes exactly the object that was read. */
export const remove = async (run: Run, { id, path }: { id: string; path: string }, live: KubeObject) => {
  run.begun = true
  const words = await deleteAt(run.cluster, path, live)
  if (words !== undefined) throw fault(run, 'refused', `The server did not delete ${id}: ${words}`)
  run.done.push(`${id} deleted`)
  run.job.log(`${id}: deleted`)
}

export const list = async (run: Run, entries: Entry[]) => {
  const words = await writeInventory(run.cluster, run.saved.namespace, run.saved.set, entries)
  if (words !== undefined) throw fault(run, 'refused', `The server refused the inventory of the set: ${words}`)
}

/** Applies one object at the checked version. If it changed meanwhile, `renew` checks again. Returns the result. */
export const write = async (
  run: Run,
  placed: Placed,
  first: Basis,
  renew: () => Promise<Basis>,
): Promise<KubeObject> => {
  let basis = first
  for (let turn = 1; ; turn += 1) {
    heed(run)
    run.begun = true
    const answer = await orNoAnswer(applyAt(run.cluster, placed, basis))
    if (!(answer instanceof NoAnswer) && (answer.code === 200 || answer.code === 201)) {
      const made = answer.body as KubeObject
      if (isDying(made)) throw fault(run, 'conflict', dyingWords(placed.id, made))
      const verb =
        answer.code === 201 ? 'created' : made.metadata.resourceVersion === basis.version ? 'unchanged' : 'changed'
      run.done.push(`${placed.id} ${verb}`)
      run.job.log(`${placed.id}: ${verb}`)
      return made
    }
    const again = answer instanceof NoAnswer || answer.code === 409
    if (!again) throw fault(run, 'refused', `The server refused ${placed.id}: ${wordsOf(answer)}`)
    if (turn === TRIES && answer instanceof NoAnswer) {
      const message = run.mask(`The cluster gave no answer to ${placed.id}: ${answer.message} ${progressOf(run)}`)
      throw new Ended({ status: 'unknown', class: 'connection_lost', message })
    }
    if (answer instanceof NoAnswer) await delay(PAUSE_MS)
    else if (turn === TRIES) {
      const owned = conflictsOf(answer)
      const words = owned ? ownedWords(placed.id, owned) : `${placed.id} keeps changing: ${wordsOf(answer)}`
      throw fault(run, 'conflict', words)
    }
    const renewed = await orNoAnswer(renew())
    if (!(renewed instanceof NoAnswer)) basis = renewed
  }
}

const orNoAnswer = <T>(asked: Promise<T>): Promise<T | NoAnswer> =>
  asked.catch((error: unknown) => {
    if (error instanceof NoAnswer) return error
    throw error
  })

const PRIORITY: [RegExp, number][] = [
  [/^Namespace$/, 0],
  [/^CustomResourceDefinition$/, 1],
  [/^(ServiceAccount|(Cluster)?Role(Binding)?)$/, 2],
  [/^(ConfigMap|Secret|PersistentVolume(Claim)?|StorageClass|ResourceQuota|LimitRange|PriorityClass)$/, 3],
  [/^Service$/, 4],
  [/^(Deployment|StatefulSet|DaemonSet|Job|CronJob|Pod|ReplicaSet)$/, 5],
]
const WAVE = 'argocd.argoproj.io/sync-wave'
const REST = 6

/** Objects in the order in which they are applied: by their waves, and by kind within each wave. */
export const wavesOf = <T extends Placed>(placed: readonly T[]): T[][][] => {
  const waveOf = ({ object: { metadata } }: Placed) =>
    Number(isObject(metadata.annotations) ? (metadata.annotations[WAVE] ?? 0) : 0) || 0
  const orderOf = ({ ref }: Placed) => PRIORITY.find(([kinds]) => kinds.test(ref.kind))?.[1] ?? REST
  const parts = <K extends T>(list: readonly K[], by: (one: K) => number): K[][] =>
    [...Map.groupBy(list, by)].sort(([a], [b]) => a - b).map(([, part]) => part)
  return parts(placed, waveOf).map((wave) => parts(wave, orderOf))
}

/** Waits until each object is ready; logs one line per change of its state. */
export const waitFor = async (run: Run, placed: readonly Seen[], look = stateOf): Promise<void> => {
  const { wait = {} } = run.job.work.inputs as { wait?: unknown }
  if (wait === false) return
  const { timeout_s = WAIT_S, ready_if } = isObject(wait) ? wait : {}
  const rules = rulesOf(ready_if)
  // The work may have less time than that; the cause is reported anyway.
  const end = Date.now() + 1000 * Number(timeout_s)
  const said = new Map<string, string>()
  let open = placed
  for (;;) {
    const states = await eachOf(open, async (one) => {
      const state = await look(run, one, rules)
      if (said.get(one.id) !== state.words && (!state.ready || said.has(one.id)))
        run.job.log(run.mask(`${one.id}: ${state.words}`), { level: state.failed ? 'error' : 'info' })
      said.set(one.id, state.words)
      return { one, ...state }
    })
    const late = Date.now() > end || run.job.left_ms() < 2 * LAST_WORD_MS
    const bad = states.filter(({ failed: broken, ready }) => broken || (late && !ready))
    if (bad.length > 0) {
      const events = await eachOf(bad.slice(0, 3), ({ one }) => eventsOf(run.cluster, one))
      const words = bad.slice(0, MAX_NAMED).map(({ one, words: state }) => `${one.id}: ${state}`)
      throw fault(run, 'not_ready', `Not ready${late ? ' in time' : ''}: ${[...words, ...events.flat()].join('; ')}.`)
    }
    open = states.filter(({ ready }) => !ready).map(({ one }) => one)
    if (open.length === 0) return
    heed(run)
    await delay(PAUSE_MS)
  }
}

type Seen = Pick<Placed, 'id' | 'path' | 'ref'> & { uid?: string }
/** A state of an object that was deleted: finalizers may keep it. */
export const goneOf: typeof stateOf = async ({ cluster }, { path, uid }) => {
  const live = await orNoAnswer(liveAt(cluster, path))
  if (live instanceof NoAnswer) return AWAY
  return live && live.metadata.uid === uid ? { ready: false, words: keptWords(live) } : { ready: true, words: 'gone' }
}

const AWAY: Readiness = { ready: false, words: 'the cluster does not answer' }
/** A cluster that does not answer for a while is waited for as well. */
const stateOf = async ({ cluster }: Run, { path, ref }: Seen, rules: Map<string, CelProgram>): Promise<Readiness> => {
  const live = await orNoAnswer(liveAt(cluster, path))
  if (live instanceof NoAnswer) return AWAY
  return live ? readinessOf(live, rules.get(ref.kind)) : { ready: false, failed: true, words: 'it is gone' }
}

type KubeEvent = {
  type?: string
  reason?: string
  message?: string
  lastTimestamp?: string
  involvedObject?: { name?: string }
}
/** The newest warnings about an object and about objects made for it, whose names begin with its name. */
const eventsOf = async ({ request }: Cluster, { ref }: Seen): Promise<string[]> => {
  if (ref.namespace === undefined) return []
  const query = { fieldSelector: 'type=Warning', limit: '500' }
  const { body } = await request('GET', `/api/v1/namespaces/${ref.namespace}/events`, { query })
  const items = (Array.isArray(body.items) ? body.items : []) as KubeEvent[]
  return items
    .filter(({ involvedObject }) => involvedObject?.name?.startsWith(ref.name))
    .sort((a, b) => String(b.lastTimestamp).localeCompare(String(a.lastTimestamp)))
    .slice(0, 3)
    .map(({ reason, message }) => `${reason}: ${String(message).slice(0, 200)}`)
}
