import { matcherOf } from '../../../shared/data/pattern.ts'
import { equalJson } from '../../../shared/data/pointer.ts'
import { type Cluster, wordsOf } from './cluster.ts'
import { bare, type Difference, differences, type KubeObject, leavesOf, ownedBy } from './fields.ts'
import { applyAt, conflictsOf, liveAt, type Placed } from './set.ts'

export type Action = 'create' | 'update' | 'none' | 'unseen'
/** `noise`: the server sets it itself. `unknown`: the value differs on every request. */
export type Found = Difference & { noise?: boolean; unknown?: boolean }
export type Checked = {
  action: Action
  fields: Found[]
  /** The fields that it takes from other managers. */
  taken: string[]
  live: KubeObject | undefined
  after: KubeObject | undefined
}
export type Refused = { class: 'refused' | 'conflict'; words: string }
export type Rules = {
  take: boolean
  noise: readonly string[]
  /** Namespaces and kinds that come with the set. */
  brought: ReadonlySet<string>
}

/** Values that the server generates for each object. */
const DRAWN = /^\/spec\/(clusterIPs?(\/\d+)?|healthCheckNodePort|ports\/[^/]+\/nodePort)$|controller-uid$/
const TRIES = 3

export const broughtOf = (placed: readonly Placed[]): Set<string> =>
  new Set(
    placed.flatMap(({ ref, object }) => {
      if (ref.kind === 'Namespace') return [`namespace ${ref.name}`]
      if (ref.kind !== 'CustomResourceDefinition') return []
      const { group, names } = object.spec as { group?: string; names?: { kind?: string } }
      return [`kind ${group} ${names?.kind}`]
    }),
  )

const isBrought = ({ ref: { apiVersion, kind, namespace } }: Placed, brought: Rules['brought']) =>
  brought.has(`namespace ${namespace}`) || brought.has(`kind ${apiVersion.split('/')[0]} ${kind}`)

/** Asks the server what applying an object would do: a dry run against the version that exists now. */
export const check = async (cluster: Cluster, placed: Placed, rules: Rules): Promise<Checked | Refused> => {
  for (let turn = 1; ; turn += 1) {
    const live = await liveAt(cluster, placed.path)
    if (live && isDying(live)) return { class: 'refused', words: dyingWords(placed.id, live) }
    const version = live && String(live.metadata.resourceVersion)
    const dry = (force: boolean) => applyAt(cluster, placed, { force, dry: true, version })
    let answer = await dry(false)
    const taken = conflictsOf(answer) ?? []
    if (taken.length > 0 && !rules.take) return { class: 'conflict', words: ownedWords(placed.id, taken) }
    if (taken.length > 0) answer = await dry(true)
    if (answer.code === 404 && !live && isBrought(placed, rules.brought)) return unseen(placed)
    if (answer.code === 409 && turn < TRIES) continue
    if (answer.code !== 200 && answer.code !== 201)
      return { class: 'refused', words: `The server refused ${placed.id}: ${wordsOf(answer)}` }
    const after = answer.body as KubeObject
    const fields = fieldsOf(placed.object, live, after, rules.noise)
    return { action: live ? (fields.length > 0 ? 'update' : 'none') : 'create', fields, taken, live, after }
  }
}

export const ownedWords = (id: string, taken: readonly string[]): string =>
  `${id} has fields that others manage: ${taken.slice(0, 10).join(', ')}. Leave them out of the set, or take them over with "conflicts: take".`

export const isDying = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined
/** It would take every change, and then be gone. */
export const dyingWords = (id: string, live: KubeObject): string => `${id} is being deleted: ${keptWords(live)}.`
export const keptWords = ({ metadata: { finalizers } }: KubeObject): string =>
  Array.isArray(finalizers) && finalizers.length > 0
    ? `its finalizers keep it: ${finalizers.join(', ')}`
    : 'it is not gone yet'

/** The unchanged manifest of an object that the server cannot check yet. */
const unseen = ({ object }: Placed): Checked => {
  const fields = [...leavesOf(object)].map(([path, after]) => ({ path, after }))
  return { action: 'unseen', fields, taken: [], live: undefined, after: undefined }
}

const fieldsOf = (
  manifest: KubeObject,
  live: KubeObject | undefined,
  after: KubeObject,
  patterns: readonly string[],
) => {
  const own = leavesOf(manifest)
  const ignored = patterns.map(matcherOf)
  return differences(leavesOf(live && bare(live)), leavesOf(bare(after))).map((one): Found => {
    const set = own.has(one.path)
    const drawn = !live && !set && DRAWN.test(one.path)
    const noise = (one.after !== undefined && !set) || ignored.some((fits) => fits(one.path))
    if (drawn) return { path: one.path, unknown: true, noise }
    return noise ? { ...one, noise } : one
  })
}

/** Why a check differs from the preview; `undefined` if all fields, changed or already equal, come out as previewed. */
export const movedFrom = (
  previewed: Pick<Placed, 'object' | 'manager'> & Pick<Checked, 'action' | 'taken'> & { fields: readonly Found[] },
  now: Checked,
  noise: readonly string[],
): string | undefined => {
  const ignored = noise.map(matcherOf)
  // The approval covers all that the manifest sets: its author cannot have it ignored.
  const own = leavesOf(previewed.object)
  const heeded = ({ path, unknown }: Found) => !unknown && (own.has(path) || !ignored.some((fits) => fits(path)))
  if (previewed.action === 'unseen') return now.action === 'update' ? 'it exists now, and differs' : undefined
  if (now.action === 'unseen') return 'the server can no longer check it'
  if (previewed.action !== 'create' && now.action === 'create') return 'it is gone'
  // The undo deletes what the set created: it must not be what someone else has created meanwhile.
  if (previewed.action === 'create' && now.live && ownedBy(now.live, previewed.manager) === undefined)
    return 'it exists now'
  const other = now.taken.find((one) => !previewed.taken.includes(one))
  if (other !== undefined) return `it would also take over ${other}`
  const shown = new Map(previewed.fields.map((field) => [field.path, field]))
  for (const field of now.fields.filter(heeded)) {
    const was = shown.get(field.path)
    if (!was || !equalJson([was.before, was.after], [field.before, field.after])) return `${field.path} changed`
  }
  const open = new Set(now.fields.map(({ path }) => path))
  const after = leavesOf(now.after && bare(now.after))
  const missed = previewed.fields.find(
    (field) => heeded(field) && !field.noise && !open.has(field.path) && !equalJson(after.get(field.path), field.after),
  )
  return missed && `${missed.path} changed`
}
