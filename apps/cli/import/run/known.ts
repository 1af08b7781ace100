import type { ResourceView } from '../../../shared/contracts/catalog/resources.ts'
import type { ImportItem, ImportResult } from '../../../shared/contracts/imports/imports.ts'
import type { Context } from '../../command.ts'
import { type Fields, type Found, fieldsOf } from '../items.ts'

export const SOURCE_LABEL = 'signalbox/import-source'
export const ID_NOTE = 'signalbox/external-id'
export const MISSING = 'signalbox/import-missing'
/** Keys of labels and annotations that importers write for themselves. */
const OWN_KEYS = /^(netbox\.dev|kubernetes\.io|terraform\.io|import)\//

export type Known = Pick<
  ResourceView,
  'resource_id' | 'type_key' | 'name' | 'version' | 'labels' | 'lifecycle_status' | 'annotations' | 'desired_state'
>

/** The open resources that carry the label of the source. */
export const knownOf = ({ api }: Context, source: string): Promise<Known[]> =>
  api.list<Known>('/api/v1/resources', { label: `${SOURCE_LABEL}=${source}`, include: 'state', page_size: '500' }, true)

const idOf = ({ annotations }: Known): string => annotations[ID_NOTE] ?? ''
export const byExternalId = (known: readonly Known[]): Map<string, Known> =>
  new Map(known.map((one) => [idOf(one), one]))

/** Types whose records the source states as a whole. */
const IS_RECORD = /^(dcim|ipam|circuits|tenancy|k8s|cloud)\./

/**
 * The items as they go to the catalog: with the source's marks, and with null for members that the source no longer
 * states. An `infra.generic` of an earlier import stays one, since a resource keeps its type.
 */
export const settledItems = (found: Found, source: string, known: readonly Known[]) => {
  const there = byExternalId(known)
  let kept = 0
  const items = found.items.map((item): ImportItem => {
    const before = there.get(item.external_id)
    const old = before?.type_key === 'infra.generic' && item.type_key !== 'infra.generic'
    if (old) kept += 1
    const made = old ? asGeneric(item, before, found) : item
    return {
      ...made,
      ...(before && made.desired_state && { desired_state: withNulls(made, before) }),
      labels: { ...made.labels, [SOURCE_LABEL]: source },
      annotations: { ...made.annotations, [ID_NOTE]: item.external_id },
    }
  })
  return { items, kept }
}

const asGeneric = (item: ImportItem, before: Known, found: Found): ImportItem => {
  const { lifecycle_status: _, observed_state, desired_state = {}, ...rest } = item
  const { attributes, ...members } = desired_state
  const { provider, kind } = before.desired_state
  return {
    ...rest,
    type_key: 'infra.generic',
    desired_state: {
      provider: provider ?? 'import',
      kind: kind ?? found.origins.get(item.external_id)?.kind ?? item.type_key,
      attributes: { ...members, ...fieldsOf(attributes) },
    },
    ...(observed_state && { observed_state: { attributes: observed_state } }),
  }
}

const withNulls = ({ type_key, desired_state = {} }: ImportItem, { desired_state: before }: Known): Fields => {
  const gone = (old: unknown, now: unknown): Fields =>
    Object.fromEntries(
      Object.keys(fieldsOf(old))
        .filter((name) => !Object.hasOwn(fieldsOf(now), name))
        .map((name) => [name, null]),
    )
  if (!IS_RECORD.test(type_key) && type_key !== 'infra.generic') return desired_state
  const attributes = { ...gone(before.attributes, desired_state.attributes), ...fieldsOf(desired_state.attributes) }
  return {
    ...(IS_RECORD.test(type_key) ? gone(before, desired_state) : {}),
    ...desired_state,
    ...(Object.keys(attributes).length > 0 && { attributes }),
  }
}

/**
 * Takes away the importer's own labels and annotations that the source no longer states, from the resources that the
 * catalog answered for the items. Returns how many changed.
 */
export const tidy = async (
  { api, dry_run }: Context,
  items: readonly ImportItem[],
  known: readonly Known[],
  results: readonly ImportResult[],
) => {
  const rows = new Map(known.map((one) => [one.resource_id, one]))
  const there = new Map(results.map(({ external_id, resource_id = '' }) => [external_id, rows.get(resource_id)]))
  let changed = 0
  for (const { external_id, labels = {}, annotations = {} } of items) {
    const before = there.get(external_id)
    if (!before) continue
    const stale = (old: Record<string, string>, now: Record<string, string>) =>
      Object.fromEntries(
        Object.keys(old)
          .filter((key) => OWN_KEYS.test(key) && !Object.hasOwn(now, key))
          .map((key) => [key, null]),
      )
    const patch = { labels: stale(before.labels, labels), annotations: stale(before.annotations, annotations) }
    if (Object.keys({ ...patch.labels, ...patch.annotations }).length === 0) continue
    changed += 1
    if (!dry_run) await patchResource(api, before.resource_id, patch)
  }
  return changed
}

/** Writes a fact at the version that the resource has now. */
export const patchResource = async (api: Context['api'], resource_id: string, patch: object): Promise<void> => {
  const path = `/api/v1/resources/${encodeURIComponent(resource_id)}`
  const { version } = await api.get<ResourceView>(`${path}?fields=version`)
  await api.send('PATCH', `${path}?mode=record_only&expected_version=${version}`, patch, {
    'content-type': 'application/merge-patch+json',
  })
}

/**
 * Labels resources that came from this source and are no longer in it, and takes the label from those that came back.
 * Returns what is missing now.
 */
export const markMissing = async ({ api, dry_run }: Context, items: readonly ImportItem[], known: readonly Known[]) => {
  const there = new Set(items.map(({ external_id }) => external_id))
  const isGone = (one: Known) => !there.has(idOf(one))
  const moved = known.filter((one) => isGone(one) !== (one.labels[MISSING] !== undefined))
  if (!dry_run)
    for (const one of moved)
      await patchResource(api, one.resource_id, { labels: { [MISSING]: isGone(one) ? 'true' : null } })
  return moved.filter(isGone).map(({ resource_id }) => resource_id)
}
