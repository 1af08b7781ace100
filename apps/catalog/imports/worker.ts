import {
  advanceJob,
  type JobItem,
  type JobRow,
  nextItems,
  noteFailure,
  saveResults,
  takeJob,
} from '../../../db/catalog/imports/jobs.ts'
import { openStamp } from '../../../db/catalog/resources/stamps.ts'
import { audit } from '../../../db/catalog/tables.ts'
import type { Tx } from '../../../db/client.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { permissionMissing } from '../../shared/auth/http.ts'
import type { ImportItem, ImportRequest, ImportResult } from '../../shared/contracts/imports/imports.ts'
import { crashPoint } from '../../shared/crash.ts'
import { AppError, problemOf } from '../../shared/errors.ts'
import { CATALOG_CODES } from '../../shared/http/edge-codes.ts'
import { toAppError } from '../../shared/http/problems.ts'
import { uuidv5 } from '../../shared/ids.ts'
import { type Loop, startLoop } from '../../shared/process/repeat.ts'
import { deniedRow } from '../command/audit.ts'
import { causing, type Write } from '../command/request.ts'
import { stampOf } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { merged } from './results.ts'
import { deniedIn, type Taken, takeAll } from './run.ts'

/** How many items one transaction imports at most, and how long it should take: a move waits this long for the tree. */
const CHUNK = 50
const HELD_MS = 80
let chunk = CHUNK
/** Sizes the next chunk as this one should have been. */
const pace = (took_ms: number): void => {
  chunk = Math.max(1, Math.min(CHUNK, Math.floor((chunk * HELD_MS) / took_ms)))
}
const CHUNK_MS = 4000
/** How many consecutive attempts a chunk has before its job fails; outages and locks of others may last an hour. */
const TRIES = 5
const PASSING_TRIES = 5000
const IDLE_MS = 500

/**
 * Imports one chunk of the next job, in one transaction with its results: a process that dies midway leaves nothing,
 * and any process continues. Returns false if every open job is being worked on.
 */
const workOnce = async (deps: CatalogDeps): Promise<boolean> => {
  let taken: JobRow | undefined
  const began = performance.now()
  try {
    const worked = await deps.db.transaction(async (tx) => {
      taken = await takeJob(tx)
      if (!taken) return false
      await takeChunk(tx, deps, taken)
      crashPoint('imports.chunk')
      return true
    })
    if (worked) {
      pace(performance.now() - began)
      deps.wake()
    }
    return worked
  } catch (error) {
    if (taken) await giveUpOrWait(deps, taken, error)
    throw error
  }
}

const takeChunk = async (tx: Tx, deps: CatalogDeps, job: JobRow): Promise<void> => {
  const now = deps.clock.now()
  await openStamp(tx, now)
  const at = now.toISOString()
  const items = await nextItems(tx, job.job_id, chunk)
  const write = items.length === 0 ? undefined : await writeOfJob(deps, job)
  if (write === undefined) return advanceJob(tx, job.job_id, { at, status: 'done' })
  if (write instanceof AppError)
    return advanceJob(tx, job.job_id, { at, status: 'failed', problem: problemOfJob(job, write) })
  const request = {
    source: job.source as ImportRequest['source'],
    options: job.options as NonNullable<ImportRequest['options']>,
    items: items.map(({ item }) => item as ImportItem),
  }
  const command_id = uuidv5(job.job_id, `${items[0]?.seq} ${items[0]?.result === null}`)
  const results = await takeAll(tx, deps, request, write, causing(write, command_id, stampOf(deps)))
  const { caller, route: action, request_id } = write
  const cause = { actor: `user:${caller.user_id}`, roles: caller.roles, action, at, request_id, command_id: null }
  const denied = deniedIn(results).map((one) => deniedRow(deps, cause, one))
  if (denied.length > 0) await tx.insert(audit).values(denied)
  await saveResults(
    tx,
    job.job_id,
    results.flatMap((one, index) => keptOf(items[index] as JobItem, one, write)),
  )
  await advanceJob(tx, job.job_id, { at, status: 'running' })
}

/** The result to store for an item; an item that ran out of time is imported again. */
const keptOf = ({ seq, result: before }: JobItem, { result, missing }: Taken, write: Write) => {
  if (result.outcome === 'deferred') return []
  const now = { ...result, index: seq }
  if (before === null) return [{ seq, result: now, again: missing.length > 0 }]
  const { problem: _, ...first } = before as ImportResult
  return [{ seq, result: merged(first, now, missing, write), again: false }]
}

/** Writes with the owner's current rights. */
const writeOfJob = async (deps: CatalogDeps, { user_id, request_id, reason }: JobRow): Promise<Write | AppError> => {
  const principal = await deps.trust.principals.get(user_id)
  if (principal?.user.status !== 'ACTIVE' || !principal.permissions.has('catalog:record'))
    return permissionMissing(['catalog:record'])
  const { user, group_keys: groups, ...rights } = principal
  const { username, kind } = user
  const caller: Caller = { user_id, username, session_id: '', kind, mode: 'json', auth_time: 0, groups, ...rights }
  return {
    caller,
    query: { ...(reason !== null && { reason }) },
    route: 'POST /v1/imports',
    request_id: request_id ?? '',
    key: undefined,
    ends_at: performance.now() + CHUNK_MS,
    content: null,
  }
}

const problemOfJob = ({ job_id, request_id }: JobRow, error: AppError) =>
  problemOf(error, request_id ?? '', `/v1/imports/${job_id}`)

/** Lets the other jobs pass, and fails this one after repeated errors. */
const giveUpOrWait = async (deps: CatalogDeps, job: JobRow, cause: unknown): Promise<void> => {
  const error = toAppError(cause, CATALOG_CODES)
  const at = deps.clock.now().toISOString()
  const weight = error.options.retryable ? 1 : PASSING_TRIES / TRIES
  if ((await noteFailure(deps.db, job.job_id, at, weight)) < PASSING_TRIES) return
  const problem = problemOfJob(job, error)
  await deps.db.transaction((tx) => advanceJob(tx, job.job_id, { at, status: 'failed', problem }))
}

/** Works on open jobs in every process; `stop` waits for the current chunk. */
export const startImporter = (deps: CatalogDeps): Loop =>
  startLoop('import', () => workOnce(deps), {
    every_ms: IDLE_MS,
    failed: (err) => deps.telemetry.log.warn({ err }, 'a chunk of an import could not be made'),
  })
