import type { Tool } from '../tools/types.ts'
import { ownedBy } from './fields.ts'
import { type Entry, isOthers, isOurs, readInventory } from './inventory.ts'
import { withCluster } from './preview.ts'
import { basisOf, goneOf, heed, list, openSaved, remove, toldOf, waitFor, wavesOf, write } from './run.ts'
import { eachOf, keyOf, liveAt, managerOf, type Placed } from './set.ts'

/**
 * `kubernetes.undo`: compensates an apply, from the same preview. It restores the previous values of the set's fields,
 * deletes what was created and no other set has taken, and recreates what was pruned. Fields of other managers remain theirs.
 */
export const undoSet: Tool = (job) =>
  withCluster(job, async (cluster) => {
    const run = await openSaved(job, cluster)
    const { saved } = run
    const listed = await readInventory(cluster, saved.namespace, saved.set)
    const uids = new Map(listed.map((entry) => [keyOf(entry), entry]))
    const before = [
      ...saved.objects.flatMap(({ previous, ...one }) => (previous ? [{ ...one, object: previous }] : [])),
      ...saved.prune.map(({ previous, ...one }) => ({ ...one, object: previous, manager: managerOf(saved.set) })),
    ]
    return toldOf(run, async () => {
      const restored: Placed[] = []
      const made: Entry[] = []
      for (const part of wavesOf(before).flat())
        await eachOf(part, async (one) => {
          const live = await liveAt(cluster, one.path)
          // The apply did not get this far, so it has not changed the object.
          if (live && ownedBy(live, one.manager) === undefined) return
          const { metadata } = await write(run, one, basisOf(live), async () =>
            basisOf(await liveAt(cluster, one.path)),
          )
          made.push({ ...one.ref, uid: String(metadata.uid) })
          restored.push(one)
        })
      const removed: (Placed & { uid: string })[] = []
      const created = saved.objects.filter(({ previous }) => previous === undefined)
      for (const one of wavesOf(created).flat(2).reverse()) {
        heed(run)
        const live = await liveAt(cluster, one.path)
        const entry = uids.get(keyOf(one.ref)) ?? one.ref
        if (!live || !isOurs(live, entry, saved.set) || isOthers(live, saved.set)) continue
        await remove(run, one, live)
        removed.push({ ...one, uid: String(live.metadata.uid) })
      }
      await waitFor(run, removed, goneOf)
      await waitFor(run, restored)
      const old = new Map(made.map((entry) => [keyOf(entry), entry]))
      const entries = saved.inventory.map((entry) => old.get(keyOf(entry)) ?? entry)
      await list(run, entries)
      return { status: 'succeeded', outputs: { undone: run.done.slice(0, 500) } }
    })
  })
