import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { ResourceDocument, ResourceView, Scope } from '../../shared/contracts/catalog/resources.ts'
import { mergeDiff } from '../../shared/data/merge-patch.ts'
import { changedPaths, type JsonObject } from '../document/pointers.ts'
import type { Types } from '../packs/registry.ts'

/** The shapes in which a resource leaves the catalog: as a single view, a list item, and the document of events. */

/** A database timestamp as RFC 3339 in UTC with microseconds. */
export const timeText = (text: string): string => {
  // The format of our own connections, by far the most common.
  if (text[10] === ' ' && text.endsWith('+00'))
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, -3).padEnd(6, '0')}Z`
  const [seconds = '', fraction = ''] = text
    .replace(' ', 'T')
    .replace(/(Z|[+-]\d\d(:?\d\d)?)$/, '')
    .split('.')
  return `${seconds}.${fraction.padEnd(6, '0')}Z`
}
export const timeOrNull = (text: string | null): string | null => (text === null ? null : timeText(text))

export const changeToken = (resource_id: string, version: number): string =>
  Buffer.from(`resource ${resource_id} ${version}`).toString('base64url')

/** The write that a change token names; `undefined` if the token is malformed. */
export const changeOf = (token: string): { resource_id: string; version: number } | undefined => {
  const [, resource_id, version] =
    /^resource ([a-z0-9][a-z0-9._:-]{0,127}) (\d{1,9})$/.exec(Buffer.from(token, 'base64url').toString('utf8')) ?? []
  return resource_id === undefined ? undefined : { resource_id, version: Number(version) }
}

const lastOperation = (row: ResourceRow) =>
  row.last_operation_id && row.last_command_id && row.last_operation_at
    ? { operation_id: row.last_operation_id, command_id: row.last_command_id, at: timeText(row.last_operation_at) }
    : null

/** The resource without derived members: scope, health, conditions (catalog.md 11). */
export const documentOf = (row: ResourceRow, types: Types): ResourceDocument => ({
  resource_id: row.resource_id,
  type_key: types.keyOf(row.type_id),
  type_version: row.type_version,
  name: row.name,
  display_name: row.display_name,
  owner: row.owner,
  labels: row.labels,
  parent_id: row.parent_id,
  lifecycle_status: row.lifecycle_status,
  annotations: row.annotations,
  desired_state: row.desired_state,
  observed_state: row.observed_state,
  version: row.version,
  generation: row.generation,
  observed_generation: row.observed_generation,
  drift: { status: row.drift_status, paths: row.drift_paths },
  last_operation: lastOperation(row),
  created_at: timeText(row.created_at),
  created_by: row.created_by,
  updated_at: timeText(row.updated_at),
  updated_by: row.updated_by,
})

/** A document as stored in revisions: without null, so that merge patches between versions are lossless. */
export const storedDocument = (document: ResourceDocument): JsonObject =>
  Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null)) as JsonObject

const BOOKKEEPING = /^(version|(observed_)?generation|drift|last_operation|updated_(at|by))$/

/** Pointers that a change touches. Leaves out members that the server counts or derives; null counts as absent. */
export const factsChanged = (before: ResourceDocument, after: ResourceDocument): string[] => {
  const [old, next] = [before, after] as Record<string, unknown>[]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return names.flatMap((name) =>
    BOOKKEEPING.test(name) ? [] : changedPaths(old?.[name] ?? undefined, next?.[name] ?? undefined, `/${name}`),
  )
}

export const documentDelta = (before: ResourceDocument, after: ResourceDocument): JsonObject =>
  mergeDiff(storedDocument(before), storedDocument(after))

const conditionsOf = (row: ResourceRow): ResourceView['conditions'] => {
  const { generation, observed_generation } = row
  const since = (at: string) => ({ observed_generation, last_transition_at: timeText(at) })
  const active = row.lifecycle_status === 'active'
  const drift = { in_sync: 'true', drifted: 'false', unknown: 'unknown' } as const
  const health =
    row.health_status === 'unknown' ? 'unknown' : row.health_status === 'healthy' ? 'true' : ('false' as const)
  return [
    {
      type: 'active',
      status: active ? 'true' : 'false',
      reason: row.lifecycle_status,
      message: `The lifecycle is ${row.lifecycle_status}.`,
      ...since(row.lifecycle_at),
    },
    {
      type: 'in_sync',
      status: drift[row.drift_status],
      reason: row.drift_status,
      message:
        row.drift_status === 'drifted'
          ? `Observed values differ from the desired ones: ${row.drift_paths.join(', ')}.`
          : row.drift_status === 'unknown'
            ? 'No compared value has been observed yet.'
            : `The state observed for generation ${observed_generation} of ${generation} matches the desired state.`,
      ...since(row.drift_at),
    },
    {
      type: 'healthy',
      status: health,
      reason: row.health_reason,
      message: `Own health is ${row.health_status}.`,
      ...since(row.health_at),
    },
  ]
}

const placedOf = (row: ResourceRow, scope: Scope, types: Types) => ({
  ...documentOf(row, types),
  health_status: row.health_status,
  health_revision: row.health_revision,
  scope,
  change_token: changeToken(row.resource_id, row.version),
})

export const viewOf = (row: ResourceRow, scope: Scope, types: Types): ResourceView => ({
  ...placedOf(row, scope, types),
  conditions: conditionsOf(row),
})

/** A list item; states, annotations and conditions only if requested. */
export const itemOf = (row: ResourceRow, scope: Scope, types: Types, with_state: boolean) => {
  if (with_state) return viewOf(row, scope, types)
  const { annotations, desired_state, observed_state, ...item } = placedOf(row, scope, types)
  return item
}

/** Covers everything that the document shows: its version, health and place, because its ancestors may move. */
export const etagOf = (row: Pick<ResourceRow, 'version' | 'health_revision' | 'path'>): string =>
  `"${row.version}-${row.health_revision}${placeOf(row.path)}"`

/** A short digest of a path; empty for a path without ancestors. */
const placeOf = (path: string): string => {
  if (!path.includes('.')) return ''
  let hash = 0x811c9dc5
  for (let i = 0; i < path.length; i++) hash = Math.imul(hash ^ path.charCodeAt(i), 0x01000193)
  return `-${(hash >>> 0).toString(16)}`
}

/** The flat list fields of an event. */
export const summaryOf = (row: ResourceRow, document: ResourceDocument): Record<string, unknown> => ({
  name: document.name,
  display_name: document.display_name,
  owner: document.owner,
  labels: document.labels,
  parent_id: document.parent_id,
  lifecycle_status: document.lifecycle_status,
  health_status: row.health_status,
  drift: document.drift,
  type_version: document.type_version,
})

const ALPHABET = '0123456789abcdefghijklmnopqrstuv'

/** `rel_` and the edge's number in base32, 13 characters, so that ids sort like numbers. */
export const relationshipId = (rel_no: string): string => {
  let rest = BigInt(rel_no)
  let text = ''
  for (let i = 0; i < 13; i++) {
    text = ALPHABET[Number(rest & 31n)] + text
    rest >>= 5n
  }
  return `rel_${text}`
}
