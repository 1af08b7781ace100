import type { FastifyRequest } from 'fastify'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import { fingerprintOf } from '../../../db/command/keys.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { permissionMissing } from '../../shared/auth/http.ts'
import type { Permission } from '../../shared/auth/permissions.ts'
import type { WriteQuery } from '../../shared/contracts/catalog/resources.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import { tagsOf } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import { SOURCES } from '../document/lifecycle.ts'
import { isObject, type JsonObject } from '../document/pointers.ts'
import { type Access, accessOf, type MayWrite, reaches } from '../read/access.ts'
import { etagOf } from '../read/documents.ts'
import type { Command } from './keys.ts'
import type { Cause } from './outbox.ts'
import { publicCommandId, type Stamp } from './run.ts'

/** What every public write shares: caller, key, permission and request. */
export type Write = {
  caller: Caller
  query: WriteQuery
  /** Method and route template. */
  route: string
  request_id: string
  key: string | undefined
  /** The deadline for its commit, in `performance.now()`. */
  ends_at: number
  /** Resources that one atomic request retires: they do not block one another. */
  together?: readonly string[]
  /** What identifies a repeated request: path, query, If-Match, body. */
  content: unknown
}

export const writeOf = (req: FastifyRequest, content: unknown): Write => {
  const query = req.query as WriteQuery
  // Edges that no named manager states carry one of these words: a manager of that name would take them over.
  const taken = SOURCES.find((source) => source === query.manager)
  if (taken) throw wrongAt('/querystring/manager', `must not be "${taken}": choose another name`)
  return {
    caller: req.caller,
    query,
    route: `${req.method} ${req.routeOptions.url}`,
    request_id: req.id,
    key: req.headers['idempotency-key'] as string | undefined,
    ends_at: req.ends_at,
    content,
  }
}

/** The command of a write; only validate_only may lack a key. */
export const commandOf = (deps: CatalogDeps, write: Write): Command => {
  const { key } = write
  if (key === undefined) {
    throw new AppError('validation_error', 'idempotency_key_required', 'The header Idempotency-Key is missing.', {
      hint: 'Send a new random Idempotency-Key with each new command, and the same one when you repeat it.',
    })
  }
  const scope = `user:${write.caller.user_id} ${write.route}`
  return {
    command_id: publicCommandId(scope, key),
    scope,
    idempotency_key: key,
    fingerprint: fingerprintOf(deps.keys.fingerprint, write.content),
    kind: 'public',
  }
}

const causeOf = (write: Write, command_id: string, at: string): Cause => ({
  actor: `user:${write.caller.user_id}`,
  manager: write.query.manager,
  force: write.query.force,
  roles: write.caller.roles,
  source: 'user',
  action: write.route,
  command_id,
  operation_id: null,
  request_id: write.request_id,
  reason: write.query.reason ?? null,
  evidence_refs: [],
  at,
})

/** The command id of a rehearsal. */
export const NO_COMMAND = '00000000-0000-0000-0000-000000000000'

/** Builds the cause of a change; called under its locks, when the time of the change is set. */
export type Causing = (locked?: ResourceRow) => Cause

export const causing =
  (write: Write, command_id: string, stamp: Stamp): Causing =>
  (locked) =>
    causeOf(write, command_id, stamp(locked))

/**
 * The permission that a write needs: catalog:record to state facts, else catalog:write. For a type whose writes apply
 * at once the two acts are the same, so either permission suffices.
 */
const permissionFor = (write: Write, writes: 'operation' | 'record' | undefined) => {
  const { caller, query } = write
  const wanted =
    query.mode === 'record_only' || (writes === 'record' && !caller.permissions.has('catalog:write'))
      ? ('catalog:record' as const)
      : ('catalog:write' as const)
  if (!caller.permissions.has(wanted)) throw permissionMissing([wanted])
  return wanted
}

/** What this caller may write in this request (catalog.md 12). Throws if the permission is missing everywhere. */
export const mayWriteOf = (deps: CatalogDeps, write: Write): MayWrite => {
  const { types } = deps.registry
  const access = new Map<Permission, Access>()
  return (type_id, scope) => {
    const permission = permissionFor(write, types.byId(type_id)?.writes)
    const reached = access.get(permission) ?? accessOf(write.caller, permission, types, deps.clock)
    access.set(permission, reached)
    return reaches(reached, type_id, scope, 'write') ? undefined : permission
  }
}

export const readAccess = (deps: CatalogDeps, caller: Caller): Access =>
  accessOf(caller, 'catalog:read', deps.registry.types, deps.clock)

const conflicts = (detail: string) =>
  new AppError('validation_error', 'malformed', detail, {
    hint: 'Send one precondition: If-Match, or expected_version.',
  })

/** What a tag that is none of ours names: the first version of a resource is 1. */
const NO_VERSION = 0

/**
 * The versions that a PATCH may be based on, from If-Match or expected_version, and the status of a mismatch (412, 409).
 * Only the version part of an ETag counts, so health never causes a false conflict. Throws 428 if both are missing.
 */
export const preconditionOf = (
  if_match: string | undefined,
  ...expected: (number | undefined)[]
): { versions: number[]; status: 409 | 412 } => {
  const tags = tagsOf(if_match ?? '*').filter((tag) => tag !== '*')
  const tagged = tags.map((tag) => Number(/^"(\d{1,10})(-\d{1,10}(-[0-9a-f]{1,8})?x?)?"$/.exec(tag)?.[1] ?? NO_VERSION))
  const given = expected.filter((version) => version !== undefined)
  const versions = given.length > 0 ? given.slice(0, 1) : tagged
  const [version] = versions
  if (version === undefined) {
    throw new AppError('version_conflict', 'precondition_required', 'A PATCH needs the version it is based on.', {
      hint: 'Send If-Match with the ETag of your last read, or expected_version.',
    })
  }
  const agree = given.every((other) => other === version) && (tagged.length === 0 || tagged.includes(version))
  if (!agree) throw conflicts('The preconditions name different versions.')
  return { versions, status: tagged.length === 0 ? 409 : 412 }
}

/** Separates expected_version from a merge patch. */
export const splitPatch = (patch: JsonObject): { expected_version: number | undefined; patch: JsonObject } => {
  const { expected_version, ...rest } = patch
  if (expected_version === undefined) return { expected_version, patch }
  if (!Number.isSafeInteger(expected_version) || (expected_version as number) < 0) {
    throw wrongAt('/expected_version', 'must be an integer from 0', {
      detail: 'expected_version is not a version.',
      as: 'type',
    })
  }
  return { expected_version: expected_version as number, patch: rest }
}

export const headersOf = (row: ResourceRow, intent_href?: string): Record<string, string> => ({
  location: `/v1/resources/${row.resource_id}`,
  etag: etagOf(row),
  ...(intent_href !== undefined && { link: `<${intent_href}>; rel="monitor"`, 'retry-after': '1' }),
})

export const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {})
