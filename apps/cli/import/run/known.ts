import type { ResourceView } from '../../../shared/contracts/catalog/resources.ts'
import type { ImportItem, ImportResult } from '../../../shared/contracts/imports/imports.ts'
import { uuidv7 } from '../../../shared/ids.ts'
import type { Context } from '../../command.ts'
import { CliError } from '../../errors.ts'
import { renamed } from '../collect.ts'
import { type Found, fieldsOf } from '../items.ts'
import { patiently } from '../send.ts'

const SOURCE_LABEL = 'signalbox/import-source'
export const ID_NOTE = 'signalbox/external-id'
export const MISSING = 'signalbox/import-missing'

export type Known = Pick<
  ResourceView,
  | 'resource_id'
  | 'type_key'
  | 'name'
  | 'parent_id'
  | 'version'
  | 'labels'
  | 'annotations'
  | 'desired_state'
  | 'field_owners'
>

/** The open resources that carry the label of the source. */
export const knownOf = ({ api }: Context, source: string): Promise<Known[]> =>
  api.list<Known>(
    '/api/v1/resources',
    { label: `${SOURCE_LABEL}=${source}`, include: 'state,owners', page_size: '500' },
    true,
  )

const idOf = ({ annotations }: Known): string => annotations[ID_NOTE] ?? ''
const byExternalId = (known: readonly Known[]): Map<string, Known> => new Map(known.map((one) => [idOf(one), one]))

/**
 * The items to send to the catalog, with the source's marks. An `infra.generic` of an earlier import stays one, because
 * a resource keeps its type. A name that another item had in an earlier import is taken, because a resource keeps its
 * name.
 */
export const settledItems = (found: Found, source: string, known: readonly Known[]) => {
  const there = byExternalId(known)
  const named = new Set(found.items.map(({ external_id }) => external_id))
  const keyOf = (type_key: string, parent_id: string | null | undefined, name: string) =>
    JSON.stringify([type_key, parent_id ?? null, name.normalize('NFC')])
  const taken = new Set(
    known.filter((one) => named.has(idOf(one))).map((one) => keyOf(one.type_key, one.parent_id, one.name)),
  )
  const isTaken = ({ type_key, parent_external_id = '', parent_id, name }: ImportItem) =>
    taken.has(keyOf(type_key, there.get(parent_external_id)?.resource_id ?? parent_id, name))
  let kept = 0
  const items = found.items.map((item): ImportItem => {
    const before = there.get(item.external_id)
    const old = before?.type_key === 'infra.generic' && item.type_key !== 'infra.generic'
    if (old) kept += 1
    const made = old ? asGeneric(item, before, found) : before === undefined && isTaken(item) ? renamed(item) : item
    return {
      ...made,
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

/** Resources that this source made or labeled and its file no longer names: no item has the id or matches them. */
export const goneOf = (known: readonly Known[], items: readonly ImportItem[], results: readonly ImportResult[]) => {
  const named = new Set(items.map(({ external_id }) => external_id))
  const found = new Set(results.map(({ resource_id }) => resource_id))
  return known.filter((one) => !named.has(idOf(one)) && !found.has(one.resource_id))
}

/** Labels resources of this source that are no longer in it, but those that have ended. Returns the labeled, and refusals. */
export const markMissing = async ({ api, dry_run }: Context, gone: readonly Known[], ended: readonly string[]) => {
  const over = new Set(ended)
  const fresh = gone.filter(({ resource_id, labels }) => labels[MISSING] === undefined && !over.has(resource_id))
  const patch = { labels: { [MISSING]: 'true' } }
  const wanted = fresh.map((one) => ({ one, op: 'update' as const, patch }))
  const refusals = dry_run ? [] : await change(api, wanted)
  const failed = fresh.flatMap(({ resource_id }, index) => {
    const refusal = refusals[index]
    return refusal ? [{ resource_id, reason: refusal.detail }] : []
  })
  return { missing: fresh.filter((_, index) => !refusals[index]).map(({ resource_id }) => resource_id), failed }
}

type Wanted = { one: Known; op: 'update' | 'retire'; patch?: object }
const BATCH = 500

/** Changes many resources at once, at the versions that were read. Returns each refusal; `undefined` for a success. */
export const change = async (api: Context['api'], wanted: readonly Wanted[]): Promise<(Refusal | undefined)[]> => {
  const refusals: (Refusal | undefined)[] = []
  for (let from = 0; from < wanted.length; from += BATCH) {
    const { body } = await send(api, wanted.slice(from, from + BATCH))
    refusals.push(...body.results.map(({ status, body: one }) => (status < 300 ? undefined : (one as Refusal))))
  }
  return refusals
}

const send = (api: Context['api'], wanted: readonly Wanted[], atomic = false) => {
  const items = wanted.map(({ one: { resource_id, version }, op, patch }) => ({
    op,
    change: { resource_id, expected_version: version, ...(patch && { patch }) },
  }))
  const key = { 'idempotency-key': uuidv7() }
  const path = '/api/v1/resources:bulk?mode=record_only'
  return patiently(() => api.send<BulkReply>('POST', path, { atomic, items }, key))
}

/**
 * Retires all of these, although they need one another, or changes none. `way`: the states that lead there, for a
 * lifecycle without a direct one. Returns why it refused.
 */
export const retireTogether = async (
  api: Context['api'],
  all: readonly Known[],
  way: readonly string[] = [],
): Promise<Refusal | undefined> => {
  const wanted = all.flatMap((one): Wanted[] => [
    ...way.map(
      (lifecycle_status, at): Wanted => ({
        one: { ...one, version: one.version + at },
        op: 'update',
        patch: { lifecycle_status },
      }),
    ),
    { one: { ...one, version: one.version + way.length }, op: 'retire' },
  ])
  return send(api, wanted, true).then(
    () => undefined,
    (error) => {
      if (error instanceof CliError && !error.passing) return { code: error.code, detail: error.detail }
      throw error
    },
  )
}
export type Refusal = { code: string; detail: string; blockers?: { resource_id: string }[]; blockers_count?: number }
type BulkReply = { results: { status: number; body: unknown }[] }
