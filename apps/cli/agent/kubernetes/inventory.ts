import { isObject } from '../../../shared/data/pointer.ts'
import { Ended, failed } from '../tools/types.ts'
import { type Cluster, rootOf, wordsOf } from './cluster.ts'
import { bare, type KubeObject, ownedBy } from './fields.ts'
import { applyAt, idOf, isSound, keyOf, liveAt, managerOf, type Placed, pathOf, type Ref } from './set.ts'

/** One object that the set applied, with its `uid` once that is known. */
export type Entry = Ref & { uid?: string }
export type Pruned = { ref: Ref; id: string; path: string; uid: string; previous: KubeObject }

/** Removed only if the step names them, because data or many other objects go with them. */
const KEPT = ['Namespace', 'CustomResourceDefinition', 'PersistentVolumeClaim', 'PersistentVolume']

/** The list of the objects that the set applied: a ConfigMap beside them. An object's copy would keep its labels. */
const placeOf = (namespace: string, set: string, objects = ''): Placed => {
  const name = `signalbox-set-${set}`
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name }
  const metadata = { name, namespace, labels: { 'app.kubernetes.io/managed-by': 'signalbox' } }
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { objects } }
  return { ref, object, id: idOf(ref), path: pathOf('/api/v1', 'configmaps', ref), manager: managerOf(set) }
}

export const readInventory = async (cluster: Cluster, namespace: string, set: string): Promise<Entry[]> => {
  const found = await liveAt(cluster, placeOf(namespace, set).path)
  if (!found || !isObject(found.data)) return []
  try {
    const entries = JSON.parse(String(found.data.objects)) as Entry[]
    if (entries.every(isSound)) return entries
    throw new Error('a foreign hand wrote it')
  } catch {
    throw new Ended(
      failed('refused', `${placeOf(namespace, set).id}, the inventory of the set, is not a valid list.`, false),
    )
  }
}

/** Returns the server's message if it refuses the list. */
export const writeInventory = async (cluster: Cluster, namespace: string, set: string, entries: Entry[]) => {
  const placed = placeOf(namespace, set, JSON.stringify(entries))
  const answer =
    entries.length === 0
      ? await cluster.request('DELETE', placed.path)
      : await applyAt(cluster, placed, { force: true })
  const gone = entries.length === 0 && answer.code === 404
  return answer.code < 300 || gone ? undefined : wordsOf(answer)
}

/** Merges both lists; a uid that becomes known later wins. */
export const joined = (before: readonly Entry[], now: readonly Entry[]): Entry[] => {
  const all = new Map(before.map((entry) => [keyOf(entry), entry]))
  for (const entry of now) all.set(keyOf(entry), { ...all.get(keyOf(entry)), ...entry })
  return [...all.values()]
}

/** Whether an object is the one that the set applied: by its uid and its manager. */
export const isOurs = (live: KubeObject, { uid }: Entry, set: string): boolean =>
  (uid === undefined || live.metadata.uid === uid) && ownedBy(live, managerOf(set)) !== undefined

/** Whether another set has applied it since: what has moved there stays. An apply that changes no field keeps its time. */
export const isOthers = ({ metadata: { managedFields } }: KubeObject, set: string): boolean => {
  const applies = (Array.isArray(managedFields) ? managedFields : []).filter(({ operation }) => operation === 'Apply')
  const own = applies.find(({ manager }) => manager === managerOf(set))
  return applies.some(
    (one) => one !== own && String(one.manager).startsWith(managerOf('')) && String(one.time) >= String(own?.time),
  )
}

/** Returns the listed objects that are no longer in the set, as they are now. Skips foreign objects and kept kinds. */
export const prunable = async (
  cluster: Cluster,
  set: string,
  { entries, placed, kinds }: { entries: readonly Entry[]; placed: readonly Placed[]; kinds: readonly string[] },
): Promise<Pruned[]> => {
  const still = new Set(placed.map(({ ref }) => keyOf(ref)))
  const found: Pruned[] = []
  for (const entry of entries) {
    const { uid: _, ...ref } = entry
    if (still.has(keyOf(ref)) || (KEPT.includes(ref.kind) && !kinds.includes(ref.kind))) continue
    const kind = await cluster.kindOf(ref.apiVersion, ref.kind)
    if (!kind || cluster.refuse(ref.kind, ref.namespace) !== undefined) continue
    const path = pathOf(rootOf(ref.apiVersion), kind.plural, ref)
    const live = await liveAt(cluster, path)
    if (!live || !isOurs(live, entry, set) || isOthers(live, set)) continue
    found.push({ ref, path, id: idOf(ref), uid: String(live.metadata.uid), previous: bare(live) })
  }
  return found
}

/** Deletes exactly the object that was read. Returns the server's message if it refuses. */
export const deleteAt = async (cluster: Cluster, path: string, live: KubeObject): Promise<string | undefined> => {
  const { uid, resourceVersion } = live.metadata
  const body = {
    ...{ apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' },
    preconditions: { uid, resourceVersion },
  }
  const answer = await cluster.request('DELETE', path, { body })
  return answer.code < 300 || answer.code === 404 ? undefined : wordsOf(answer)
}
