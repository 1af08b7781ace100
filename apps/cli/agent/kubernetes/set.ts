import { Buffer } from 'node:buffer'
import { maskerOf } from '../../../shared/data/mask.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import { Ended, failed, type Job, refusal } from '../tools/types.ts'
import { type Answer, type Cluster, rootOf, wordsOf } from './cluster.ts'
import { type KubeObject, leavesOf } from './fields.ts'

/** The identity of an object: its kind, namespace and name. */
export type Ref = { apiVersion: string; kind: string; namespace?: string; name: string }
const PARTS = {
  apiVersion: /^([a-z0-9][a-z0-9.-]{0,251}\/)?[a-z0-9]{1,63}$/,
  namespace: /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
  name: /^[a-z0-9]([a-z0-9._:-]{0,251}[a-z0-9])?$/i,
}
/** Whether these can be parts of a path: none of them leads to another object. */
export const isSound = (ref: { apiVersion: unknown; namespace?: unknown; name: unknown }): boolean =>
  PARTS.apiVersion.test(String(ref.apiVersion)) &&
  PARTS.name.test(String(ref.name)) &&
  PARTS.namespace.test(String(ref.namespace ?? 'default'))

/** An object of the set with its path on the server. */
export type Placed = { ref: Ref; path: string; id: string; object: KubeObject; manager: string }

export const managerOf = (set: string): string => `signalbox-${set}`
export const idOf = ({ apiVersion, kind, namespace, name }: Ref): string =>
  `${kind}${apiVersion.includes('/') ? `.${apiVersion.split('/')[0]}` : ''} ${namespace === undefined ? '' : `${namespace}/`}${name}`
export const keyOf = ({ apiVersion, kind, namespace = '', name }: Ref): string =>
  [apiVersion.replace(/\/?[^/]*$/, ''), kind, namespace, name].join(' ')

export const pathOf = (root: string, plural: string, { namespace, name }: Ref): string =>
  `${root}/${namespace === undefined ? '' : `namespaces/${namespace}/`}${plural}/${name}`

/** Part of the path of a request. */
const PLURAL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** The kind that a definition in the same set adds. */
const broughtBy = (objects: KubeObject[], { apiVersion, kind }: KubeObject) => {
  for (const { kind: definition, spec } of objects) {
    if (definition !== 'CustomResourceDefinition' || !isObject(spec) || !isObject(spec.names)) continue
    const versions = Array.isArray(spec.versions) ? spec.versions : []
    const served = versions.some((one) => isObject(one) && `${spec.group}/${one.name}` === apiVersion)
    const plural = String(spec.names.plural)
    if (served && spec.names.kind === kind && PLURAL.test(plural))
      return { plural, namespaced: spec.scope === 'Namespaced' }
  }
  return undefined
}

/** Assigns each object its path in the cluster, within the rules of the agent's file. */
export const placeAll = async (cluster: Cluster, objects: KubeObject[], namespace: string, set: string) => {
  const outside = cluster.refuse('ConfigMap', namespace)
  if (outside !== undefined) throw refusal(outside)
  const placed: Placed[] = []
  const seen = new Set<string>()
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object
    const found = (await cluster.kindOf(apiVersion, kind)) ?? broughtBy(objects, object)
    if (!found)
      throw new Ended(failed('refused', `The cluster has no kind ${kind} in ${apiVersion}. No change was made.`, false))
    const where = found.namespaced ? (metadata.namespace ?? namespace) : undefined
    const ref = { apiVersion, kind, ...(where !== undefined && { namespace: where }), name: metadata.name }
    const refused = cluster.refuse(kind, where)
    if (refused !== undefined) throw refusal(`${refused} ${idOf(ref)} was not touched.`)
    if (seen.has(keyOf(ref))) throw refusal(`The set contains ${idOf(ref)} twice.`)
    seen.add(keyOf(ref))
    const { namespace: _, ...own } = metadata
    const full = { ...object, metadata: { ...own, ...(where !== undefined && { namespace: where }) } } as KubeObject
    const path = pathOf(rootOf(apiVersion), found.plural, ref)
    placed.push({ ref, path, id: idOf(ref), object: full, manager: managerOf(set) })
  }
  return placed
}

/** The object as it is on the server; `undefined` if it does not exist. */
export const liveAt = async (cluster: Cluster, path: string): Promise<KubeObject | undefined> => {
  const answer = await cluster.request('GET', path)
  if (answer.code === 404) return undefined
  if (answer.code !== 200) throw new Ended(failed('refused', `${path}: ${wordsOf(answer)}`, false))
  return answer.body as KubeObject
}

type Apply = { force?: boolean; dry?: boolean; version?: string | undefined }
/** Server-side apply of an object under its set's manager, against the version that was read. */
export const applyAt = (cluster: Cluster, { path, object, manager }: Placed, { force, dry, version }: Apply) =>
  cluster.request('PATCH', path, {
    patch: true,
    body: version === undefined ? object : { ...object, metadata: { ...object.metadata, resourceVersion: version } },
    query: {
      ...{ fieldManager: manager, fieldValidation: 'Strict', force: String(force === true) },
      ...(dry && { dryRun: 'All' }),
    },
  })

/** The fields of other managers in a refused apply, as ".spec.replicas of hpa"; `undefined` for other refusals. */
export const conflictsOf = ({ code, body }: Answer): string[] | undefined => {
  const causes = isObject(body.details) && Array.isArray(body.details.causes) ? body.details.causes : []
  const taken = causes.filter((cause) => isObject(cause) && cause.reason === 'FieldManagerConflict')
  if (code !== 409 || taken.length === 0) return undefined
  return taken.map(({ field, message }) => `${field} of ${/"([^"]+)"/.exec(String(message))?.[1] ?? 'another manager'}`)
}

const AT_ONCE = 8
/** Runs over a list, a few items at a time. After a failure none begins, and those in flight end before it throws. */
export const eachOf = async <T, R>(list: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> => {
  const results: R[] = []
  const faults: unknown[] = []
  let next = 0
  const turn = async () => {
    for (let i = next++; i < list.length && faults.length === 0; i = next++) results[i] = await act(list[i] as T)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, () => turn().catch((fault: unknown) => faults.push(fault))))
  if (faults.length > 0) throw faults[0]
  return results
}

const SECRET_LENGTH = 6
/** Masks the data of Secrets, and values at `hidden` paths, wherever they appear, such as in the server's messages. */
export const secretsMask = (
  job: Job,
  objects: readonly (KubeObject | undefined)[],
  hidden: readonly ((path: string) => boolean)[],
) => {
  const values = objects.flatMap((object) =>
    object?.kind === 'Secret' && isObject(object.data) ? Object.values(object.data).map(String) : [],
  )
  const plain = values.flatMap((coded) => [coded, Buffer.from(coded, 'base64').toString('utf8')])
  const others = objects.flatMap((object) =>
    [...leavesOf(hidden.length > 0 ? object : undefined)].flatMap(([path, value]) =>
      typeof value !== 'object' && hidden.some((fits) => fits(path)) ? [String(value)] : [],
    ),
  )
  const mask = maskerOf([...plain, ...others].filter(({ length }) => length >= SECRET_LENGTH))
  return (text: string) => mask(job.mask(text))
}
