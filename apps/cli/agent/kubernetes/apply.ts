import { setTimeout as delay } from 'node:timers/promises'
import { inForce, type Tool } from '../tools/types.ts'
import { broughtOf, type Checked, check, movedFrom, type Rules } from './check.ts'
import { type Entry, isOthers, joined, readInventory } from './inventory.ts'
import { type Saved, withCluster } from './preview.ts'
import { rulesOf } from './ready.ts'
import {
  type Basis,
  basisOf,
  fault,
  goneOf,
  heed,
  list,
  openSaved,
  type Run,
  remove,
  toldOf,
  waitFor,
  wavesOf,
  write,
} from './run.ts'
import { eachOf, keyOf, liveAt } from './set.ts'

type Item = Saved['objects'][number]

/** How often to look for a kind that was only just added. */
const LOOKS = 20
const LOOK_MS = 500
const MAX_LISTED = 500

/** `kubernetes.apply`: applies exactly the previewed objects, once all pass a new check; else writes no object. */
export const applySet: Tool = (job) =>
  withCluster(job, async (cluster) => {
    const run = await openSaved(job, cluster)
    const { saved } = run
    const { wait } = job.work.inputs as { wait?: { ready_if?: unknown } }
    rulesOf(wait ? wait.ready_if : undefined)
    const rules: Rules = { take: saved.take, noise: saved.noise, brought: broughtOf(saved.objects) }
    const checked = await eachOf(saved.objects, async (item) => ({ item, now: await recheck(run, item, rules) }))
    const gone = await eachOf(saved.prune, async (one) => ({ one, live: await liveAt(cluster, one.path) }))
    const other = gone.find(({ one, live }) => live && live.metadata.uid !== one.uid)
    if (other) throw fault(run, 'preview_stale', `${other.one.id} is not the object that was to be deleted.`)
    const taken = gone.find(({ live }) => live && isOthers(live, saved.set))
    if (taken) throw fault(run, 'preview_stale', `${taken.one.id} was to be deleted, and another set has it now.`)
    const before = await readInventory(cluster, saved.namespace, saved.set)
    const basis = new Map(checked.map(({ item, now }) => [item, now]))
    return toldOf(run, async () => {
      const entries = await applyAll(run, basis, before, rules)
      await waitFor(run, saved.objects)
      const pruned: Saved['prune'] = []
      for (const { one, live } of gone) {
        heed(run)
        if (live && (await prune(run, one))) pruned.push(one)
      }
      await waitFor(run, pruned, goneOf)
      const left = entries.filter((entry) => !saved.prune.some(({ ref }) => keyOf(ref) === keyOf(entry)))
      if (left.length < entries.length) await list(run, left)
      const applied = run.done.slice(0, MAX_LISTED)
      const counts = { applied_count: run.done.length, cluster_uid: cluster.uid }
      return { status: 'succeeded', outputs: { applied, ...counts, catalog: inForce(run.job) } }
    })
  })

/** Checks an object again and compares the result with the preview. */
const recheck = async (run: Run, item: Item, rules: Rules): Promise<Checked> => {
  const now = await check(run.cluster, item, rules)
  if ('words' in now) throw fault(run, 'preview_stale', now.words)
  const moved = movedFrom(item, now, rules.noise)
  if (moved !== undefined) throw fault(run, 'preview_stale', `${item.id} has changed since the preview: ${moved}.`)
  return now
}

const basisFor = ({ live, taken }: Checked): Basis => basisOf(live, taken.length > 0)

/** Applies all waves. Writes the set's list before the first object, other than a namespace, so that none is lost. */
const applyAll = async (run: Run, basis: Map<Item, Checked>, before: Entry[], rules: Rules): Promise<Entry[]> => {
  const { saved } = run
  const made: Entry[] = []
  const intended = joined(
    before,
    saved.objects.map(({ ref }) => ref),
  )
  let listed = false
  const waves = wavesOf(saved.objects)
  for (const [i, wave] of waves.entries()) {
    for (const part of wave) {
      if (!listed && part[0]?.ref.kind !== 'Namespace') {
        await list(run, intended)
        listed = true
      }
      await eachOf(part, async (item) => {
        const seen = basis.get(item)
        const now = seen?.action === 'unseen' ? await firstCheck(run, item, rules) : (seen as Checked)
        const renew = async () => basisFor(await recheck(run, item, rules))
        const { metadata } = await write(run, item, basisFor(now), renew)
        made.push({ ...item.ref, uid: String(metadata.uid) })
      })
      if (part[0]?.ref.kind === 'CustomResourceDefinition') await waitFor(run, part)
    }
    if (i < waves.length - 1) await waitFor(run, wave.flat())
  }
  const entries = joined(before, made)
  await list(run, entries)
  return entries
}

/** The first check of an object whose namespace or kind came with the set: the object must be new there. */
const firstCheck = async (run: Run, item: Item, rules: Rules): Promise<Checked> => {
  for (let look = 1; ; look += 1) {
    heed(run)
    const now = await check(run.cluster, item, rules)
    if ('words' in now) throw fault(run, 'refused', now.words)
    if (now.action === 'update') throw fault(run, 'conflict', `${item.id} already exists and differs.`)
    if (now.action !== 'unseen') return now
    if (look === LOOKS) throw fault(run, 'refused', `The server still does not know the kind of ${item.id}.`)
    await delay(LOOK_MS)
  }
}

/** Returns false for an object that stays: another set may have taken it while this one was waited for. */
const prune = async (run: Run, one: Saved['prune'][number]): Promise<boolean> => {
  const live = await liveAt(run.cluster, one.path)
  if (!live) return true
  if (live.metadata.uid !== one.uid) throw fault(run, 'conflict', `${one.id} is not the object that was to be deleted.`)
  if (isOthers(live, run.saved.set)) {
    run.job.log(`${one.id}: not deleted, another set has it now`)
    return false
  }
  await remove(run, one, live)
  return true
}
