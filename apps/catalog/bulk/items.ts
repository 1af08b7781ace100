import { getResource } from '../../../db/catalog/resources/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { OperationRef } from '../../shared/contracts/catalog/resources.ts'
import type { BulkChange, BulkDone, BulkItem, BulkOp } from '../../shared/contracts/imports/bulk.ts'
import { AppError, type Violation } from '../../shared/errors.ts'
import { base32Id } from '../../shared/ids.ts'
import { createWish, END, type Wish } from '../changes/hold.ts'
import { type Causing, preconditionOf, splitPatch, type Write } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import { refusedAs } from '../document/names.ts'
import type { JsonObject } from '../document/pointers.ts'
import { insertNew, type Wanted } from '../resources/create.ts'
import { lockToWrite, refuseVersion } from '../resources/lock.ts'
import { changeResource, refuseUnknown } from '../resources/patch.ts'
import { applyChange } from '../resources/write.ts'
import { violated } from '../rules/change.ts'
import { composed } from '../rules/notes.ts'

/** One item of a bulk request, ready to run. It uses the same functions as the routes for single changes. */
export type Prepared = { wish: Wish; make: (tx: Tx, by: Causing) => Promise<Made> }
type Made = { status: number; body: BulkDone; about: string }

export const prepare = (deps: CatalogDeps, { op, change }: BulkItem, write: Write): Prepared =>
  PREPARE[op](deps, change as never, write)

type Row = { resource_id: string; version: number }
const madeOf = ({ resource_id, version }: Row, status: number, applied: boolean, intent?: OperationRef): Made => ({
  status,
  body: { resource_id, version, applied, ...(intent && { operation_ref: intent }) },
  about: resource_id,
})

const create = (deps: CatalogDeps, body: BulkChange<'create'>, write: Write): Prepared => {
  // Fixed here because the transaction may restart.
  const wanted: Wanted = { ...composed(body), resource_id: body.resource_id ?? base32Id('res') }
  return {
    wish: createWish(deps.registry.types, wanted),
    make: async (tx, by) => {
      try {
        const { row, intent } = await insertNew(tx, deps, wanted, write, by)
        return madeOf(row.row, intent ? 202 : 201, true, intent)
      } catch (error) {
        if (body.resource_id !== undefined || !(error instanceof AppError)) throw error
        throw refusedAs(error, new Map([[wanted.resource_id, body.name]]))
      }
    },
  }
}

const update = (deps: CatalogDeps, body: BulkChange<'update'>, write: Write): Prepared => {
  const { resource_id } = body
  const { patch, expected_version: named } = splitPatch(body.patch as JsonObject)
  preconditionOf(undefined, body.expected_version, named)
  refuseUnknown(patch)
  const { lifecycle_status } = patch
  return {
    wish: { resource_id, edges: [], ...(typeof lifecycle_status === 'string' && { lifecycle_status }) },
    make: (tx, by) => patchOne(tx, deps, { ...body, patch }, write, by),
  }
}

const patchOne = async (
  tx: Tx,
  deps: CatalogDeps,
  { resource_id, patch, expected_version }: { resource_id: string; patch: JsonObject; expected_version: number },
  write: Write,
  by: Causing,
): Promise<Made> => {
  const precondition = { versions: [expected_version], status: 409 as const }
  const { row, applied, intent } = await changeResource(tx, deps, { resource_id, patch, precondition, write }, by)
  return madeOf(row, intent ? 202 : 200, applied || intent !== undefined, intent)
}

/** Locks the resource of a change at the version that the change names. */
const lockAt = async (
  tx: Tx,
  deps: CatalogDeps,
  { resource_id, expected_version }: { resource_id: string; expected_version: number },
  write: Write,
  wish?: Parameters<typeof lockToWrite>[4],
) => {
  const locked = await lockToWrite(tx, deps, write, resource_id, wish)
  const conflict = refuseVersion(locked.row, [expected_version])
  if (conflict) throw conflict
  return locked
}

/** Edges and ends are facts: a caller states them, like a lifecycle state. */
const needFacts = ({ query }: Write, op: BulkOp): void => {
  if (query.mode === 'record_only') return
  const wrong: Violation = { pointer: '/op', code: 'read_only_field', message: `${op} requires mode=record_only` }
  throw violated([wrong])
}

const relate = (deps: CatalogDeps, body: BulkChange<'relate'>, write: Write): Prepared => {
  const { resource_id, relationship_changes } = body
  return {
    wish: { resource_id, edges: relationship_changes },
    make: async (tx, by) => {
      const changes = { relationship_changes, pointer: '/relationship_changes' }
      const locked = await lockAt(tx, deps, body, write, changes)
      needFacts(write, 'relate')
      const written = await applyChange(tx, deps, locked, {}, by(locked.row))
      return madeOf(written.row, 200, written.applied)
    },
  }
}

const retire = (deps: CatalogDeps, body: BulkChange<'retire'>, write: Write): Prepared => ({
  wish: { resource_id: body.resource_id, edges: [], lifecycle_status: END },
  make: async (tx, by) => {
    if (write.query.mode !== 'record_only') await lockAt(tx, deps, body, write)
    needFacts(write, 'retire')
    const lifecycle_status = await terminalOf(tx, deps, body.resource_id)
    return patchOne(tx, deps, { ...body, patch: { lifecycle_status } }, write, by)
  },
})

const terminalOf = async (tx: Tx, { registry }: CatalogDeps, resource_id: string): Promise<string> => {
  const row = await getResource(tx, resource_id)
  const type = row && registry.types.byId(row.type_id)
  return type?.lifecycle.terminal[0] ?? 'retired'
}

const PREPARE: { [Op in BulkOp]: (deps: CatalogDeps, change: BulkChange<Op>, write: Write) => Prepared } = {
  create,
  update,
  relate,
  retire,
}
