import {
  claimCommands,
  dropClaims,
  getCommands,
  insertMany,
  type NextFacts,
  type NextState,
  type StoredAnswerRow,
  storeAnswers,
  updateFacts,
  updateStates,
} from '../../../db/catalog/resources/batch.ts'
import { lockAndGetAll } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import { audit, evidence_ref, outbox, resource_operation, revision } from '../../../db/catalog/tables.ts'
import type { Tx } from '../../../db/client.ts'
import type { ResourceUpdateCommand } from '../../shared/contracts/catalog/commands.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { resourceEventsOf } from '../command/outbox.ts'
import { type Answer, type Command, claimOf, replayOf, type Stamp, stampOf } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { refuseVersion } from '../resources/lock.ts'
import { columnsOf, recordOf, referencesOf } from '../resources/versions.ts'
import { validate } from '../resources/write.ts'
import { identityHash } from '../rules/change.ts'
import { causeOf, changeOf, resultOf, type Sender } from './record.ts'

/** A result of an operation that touches one resource's states and nothing else. */
export type Plain = { command: Command; body: ResourceUpdateCommand; sender: Sender }

/** Whether a result can be written without a look at other rows: no edges, capabilities, lifecycle or health. */
export const isPlain = ({ changes }: ResourceUpdateCommand): boolean =>
  Object.keys(changes).every((name) => name === 'desired_state_patch' || name === 'observed_state_patch')

/**
 * Applies many plain commands, no two with one id or key, in one transaction with one statement for each table and step
 * (catalog.md 8). Commands on one resource apply in their order. Gives an answer or a refusal for each; what is refused
 * leaves nothing behind.
 */
export const applyPlain = async (
  tx: Tx,
  deps: CatalogDeps,
  items: readonly Plain[],
): Promise<(Answer | AppError)[]> => {
  const now = deps.clock.now()
  const claims = items.map(({ command }) => claimOf(deps, command, now))
  const fresh = await claimCommands(tx, claims)
  const used = items.filter(({ command }) => !fresh.has(command.command_id)).map(({ command }) => command)
  const known = used.length > 0 ? await getCommands(tx, used) : []
  const rows = await lockRows(
    tx,
    items.filter(({ command }) => fresh.has(command.command_id)).map(({ body }) => body.resource_id),
  )
  const written = createWritten(deps, rows)
  const stamp = stampOf(deps)
  const refused: string[] = []
  const outcomes = items.map((item): Answer | AppError => {
    const { command } = item
    try {
      if (fresh.has(command.command_id)) return written.apply(item, stamp)
      return replayOf(command, holderOf(command, known))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (fresh.has(command.command_id)) refused.push(command.command_id)
      return error
    }
  })
  await Promise.all([dropClaims(tx, refused), written.flush(tx)])
  return outcomes
}

const holderOf = ({ command_id, scope, idempotency_key }: Command, known: Awaited<ReturnType<typeof getCommands>>) =>
  known.find((row) => row.command_id === command_id) ??
  known.find((row) => row.scope === scope && row.idempotency_key === idempotency_key)

const lockRows = async (tx: Tx, resource_ids: readonly string[]): Promise<Map<string, ResourceRow>> =>
  new Map((await lockAndGetAll(tx, [...new Set(resource_ids)])).map((row) => [row.resource_id, row]))

/** What the commands lead to, worked out in memory over the locked rows, then written at once. */
const createWritten = (deps: CatalogDeps, rows: Map<string, ResourceRow>) => {
  const moved = new Map<string, ResourceRow>()
  const facts = new Map<string, NextFacts>()
  const answers: StoredAnswerRow[] = []
  const into = {
    revisions: [] as object[],
    operations: [] as object[],
    evidence: [] as object[],
    audits: [] as object[],
    events: [] as object[],
  }

  const keep = (row: ResourceRow, version_from: number, cause: ReturnType<typeof causeOf>) => {
    const { operation, evidence } = referencesOf(row, version_from, cause)
    if (operation) into.operations.push(operation)
    into.evidence.push(...evidence)
  }

  const apply = ({ command, body, sender }: Plain, stamp: Stamp): Answer => {
    const row = rows.get(body.resource_id)
    if (!row) throw notFound('resource', body.resource_id)
    const conflict = refuseVersion(row, body.expected_version)
    if (conflict) throw conflict
    const cause = causeOf(body, sender, stamp(row))
    const change = changeOf(row, body.changes)
    const held = validate(deps, { row, plan: NO_EDGES }, change, cause)
    const applied =
      !equalJson(held.desired_state, row.desired_state) || !equalJson(held.observed_state, row.observed_state)
    let after = row
    if (applied) {
      const { fixed, state } = columnsOf({ ...held, row, change, ends: false }, cause, 0)
      after = { ...row, ...fixed, ...state } as ResourceRow
      rows.set(body.resource_id, after)
      moved.set(row.rid, after)
      if (Object.keys(fixed).length > 0) {
        const { rid, type_version, desired_state } = after
        facts.set(rid, { rid, type_version, desired_state, identity_hash: identityHash(held.type, held.desired_state) })
      }
      const record = recordOf(deps, after, row, { cause, edges: [], providers: [] })
      into.revisions.push(record.revision)
      into.audits.push(record.audit)
      const event = { type: 'resource.updated' as const, changed_paths: record.changed_paths, relationship_changes: [] }
      into.events.push(...resourceEventsOf(cause, after, record.document, event))
    }
    keep(after, row.version, cause)
    const result = resultOf(after, row.version, applied, [], applied ? undefined : 'no_change')
    const { status, headers } = result
    const bytes = Buffer.from(JSON.stringify(result.body))
    answers.push({ command_id: command.command_id, resource_id: body.resource_id, status, headers, body: bytes })
    return { status, headers, body: bytes, replayed: false }
  }

  /** One after the other on the connection, in one round trip. */
  const flush = (tx: Tx): Promise<unknown> =>
    Promise.all([
      updateFacts(tx, [...facts.values()]),
      updateStates(tx, [...moved.values()].map(stateOf)),
      insertMany(tx, revision, into.revisions),
      insertMany(tx, resource_operation, into.operations),
      insertMany(tx, evidence_ref, into.evidence),
      insertMany(tx, audit, into.audits),
      storeAnswers(tx, answers),
      // Last, and in the order of the commands: id order is version order within a resource (catalog.md 11).
      insertMany(tx, outbox, into.events),
    ])

  return { apply, flush }
}

const stateOf = (row: ResourceRow): NextState => ({
  rid: row.rid,
  version: row.version,
  generation: row.generation,
  observed_generation: row.observed_generation,
  observed_state: row.observed_state,
  drift_status: row.drift_status,
  drift_paths: row.drift_paths,
  drift_at: row.drift_at,
  last_operation_id: row.last_operation_id,
  last_command_id: row.last_command_id,
  last_operation_at: row.last_operation_at,
  updated_at: row.updated_at,
  updated_by: row.updated_by,
})

const NO_EDGES = { resolved: [] }
