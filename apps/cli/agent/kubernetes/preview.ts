import { randomBytes } from 'node:crypto'
import type { ObjectSet, PreviewChange, PreviewField } from '../../../shared/contracts/client/preview.ts'
import { maskIn } from '../../../shared/data/mask.ts'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { digitsOf } from '../../../shared/run/exact.ts'
import { pictureOf } from '../tools/picture.ts'
import { sealedWith } from '../tools/seal.ts'
import { failed, type Job, refusal, refusedBy, type Tool, type Verdict } from '../tools/types.ts'
import { broughtOf, type Checked, check, type Found, type Refused, type Rules } from './check.ts'
import { type Cluster, NoAnswer, openCluster } from './cluster.ts'
import { eitherOf, type KubeObject, ownedBy, partOf } from './fields.ts'
import { type Entry, type Pruned, prunable, readInventory } from './inventory.ts'
import { render } from './render.ts'
import { eachOf, type Placed, placeAll, secretsMask } from './set.ts'

/** The sealed data that leaves the agent: everything that the apply and its undo need. */
export type Saved = {
  /** Keeps the digest from revealing a secret. */
  nonce: string
  cluster_uid: string
  namespace: string
  set: string
  noise: string[]
  take: boolean
  /** `previous` has the values of the fields that the set has or gets; `undefined` if the object did not exist. */
  objects: (Placed & Pick<Checked, 'action' | 'fields' | 'taken'> & { previous?: KubeObject })[]
  prune: Pruned[]
  inventory: Entry[]
  /** Older agents did not keep it. */
  sensitive?: string[]
}

const LAST_APPLIED = 'last-applied-configuration'
const MAX_REFUSED = 10
const MAX_PATTERNS = 100

const textsOf = (job: Job, member: string): string[] => {
  const value = (job.work.inputs as Record<string, unknown>)[member] ?? []
  if (!Array.isArray(value) || value.length > MAX_PATTERNS || value.some((one) => typeof one !== 'string'))
    throw refusal(`"${member}" must be a list of strings.`)
  return value as string[]
}

/** Keeps the cluster open while `act` runs. */
export const withCluster = async (job: Job, act: (cluster: Cluster) => Promise<Verdict>): Promise<Verdict> => {
  const cluster = await openCluster(job)
  try {
    return await act(cluster)
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    const message = `The cluster "${cluster.name}" stopped answering: ${error.message}`
    if (cluster.wrote()) return { status: 'unknown', class: 'connection_lost', message }
    return failed('unreachable', `${message} No change was made.`, true)
  } finally {
    await cluster.close()
  }
}

/**
 * `kubernetes.preview`: asks the server what applying the set would do, object by object. It keeps the rendered set,
 * sealed, under its digest. Every request is a read or a dry run.
 */
export const previewSet: Tool = (job) =>
  withCluster(job, async (cluster) => {
    const { conflicts = 'refuse', prune = false } = job.work.inputs as Record<string, unknown>
    if ((conflicts !== 'refuse' && conflicts !== 'take') || typeof prune !== 'boolean')
      return refusedBy('"conflicts" must be refuse or take, and "prune" true or false.')
    const { objects, taken, namespace, set } = await render(job, cluster.version)
    const placed = await placeAll(cluster, objects, namespace, set)
    const rules: Rules = { take: conflicts === 'take', noise: textsOf(job, 'noise'), brought: broughtOf(placed) }
    const results = await eachOf(placed, (one) => check(cluster, one, rules))
    const paths = textsOf(job, 'sensitive')
    const sensitive = paths.map(matcherOf)
    const lives = results.map((one) => ('live' in one ? one.live : undefined))
    const mask = secretsMask(job, [...objects, ...lives], sensitive)
    const refused = results.filter((one): one is Refused => 'words' in one)
    const [first] = refused
    if (first) {
      const words = refused.slice(0, MAX_REFUSED).map((one) => one.words)
      const kind = refused.every((one) => one.class === 'conflict') ? 'conflict' : first.class
      return failed(kind, mask(`${words.join(' ')} No change was made.`), false)
    }
    const inventory = await readInventory(cluster, namespace, set)
    const gone = prune
      ? await prunable(cluster, set, { entries: inventory, placed, kinds: textsOf(job, 'prune_kinds') })
      : []
    const checked = results as Checked[]
    const saved: Saved = {
      ...{ nonce: randomBytes(32).toString('hex'), cluster_uid: cluster.uid, namespace, set },
      ...{ noise: [...rules.noise], take: rules.take, prune: gone, inventory, sensitive: paths },
      objects: placed.map((one, i) => savedOf(one, checked[i] as Checked)),
    }
    const isSensitive = (kind: string, path: string) =>
      (kind === 'Secret' && (path.startsWith('/data') || path.includes(LAST_APPLIED))) ||
      sensitive.some((fits) => fits(path))
    const changes = [
      ...gone.map(({ id, uid }) => ({ id, action: 'delete', fields: [{ path: '/metadata/uid', before: uid }] })),
      ...saved.objects.flatMap((one) => changeOf(one, mask, (path) => isSensitive(one.ref.kind, path))),
    ]
    const made: Omit<ObjectSet, 'plan'> = {
      ...{ format: 'signalbox/preview@1', binding: 'checked', tool: `kubernetes ${cluster.version}`, drift: 0 },
      ...{ ...taken, cluster: cluster.name, set, ...pictureOf(changes) },
      unforeseen: saved.objects
        .filter(({ action }) => action === 'unseen')
        .map(({ id }) => `${id}: the server can check it once its namespace or kind exists`)
        .slice(0, 200),
    }
    const preview = await sealedWith(job, 'objects', made, Buffer.from(JSON.stringify(saved)))
    return { status: 'succeeded', outputs: { preview } }
  })

const savedOf = (placed: Placed, { action, fields, taken, live, after }: Checked): Saved['objects'][number] => {
  const { manager } = placed
  const owned = live && after && eitherOf(ownedBy(live, manager), ownedBy(after, manager))
  return { ...placed, action, fields, taken, ...(owned && live && { previous: partOf(live, owned) }) }
}

const changeOf = (
  { id, action, fields, taken }: Saved['objects'][number],
  mask: (text: string) => string,
  isSensitive: (path: string) => boolean,
): PreviewChange[] => {
  if (action === 'none' && taken.length === 0) return []
  const values = (value: unknown): unknown => maskIn(value, (text) => mask(digitsOf(text)))
  const shown = fields.map(({ path, before, after, unknown, noise }: Found): PreviewField => {
    const marks = { path, ...(unknown && { unknown }), ...(noise && { noise }) }
    if (isSensitive(path)) return { ...marks, sensitive: true }
    return {
      ...marks,
      ...(before !== undefined && { before: values(before) }),
      ...(after !== undefined && { after: values(after) }),
    }
  })
  // The folded fields come last, so that a size limit drops them first.
  const ordered = [...shown.filter(({ noise }) => !noise), ...shown.filter(({ noise }) => noise)]
  const note = taken.length > 0 ? { note: `takes over ${taken.join(', ')}` } : {}
  return [{ id, action: action === 'create' || action === 'unseen' ? 'create' : 'update', ...note, fields: ordered }]
}
