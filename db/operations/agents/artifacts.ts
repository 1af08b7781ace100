import { sql } from 'drizzle-orm'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import type { Db, Queryable, Tx } from '../../client.ts'
import { endedBefore } from '../expressions.ts'

/** An artifact that an attempt announces: its bytes arrive separately, or are stored elsewhere (`uri`). */
export type Announced = { name: string; kind: string; media_type: string; size: number; sha256: string; uri?: string }
type Key = { operation_id: string; node_id: string; attempt: number }

/**
 * Records the artifacts that an agent announces; a repeat has no effect. `stored`: digests whose bytes exist. Returns the
 * name of an artifact that this agent announced with other bytes before. Those of a lost agent remain beside them.
 */
export const announceArtifacts = async (
  tx: Tx,
  { operation_id, node_id, attempt }: Key,
  announced: readonly Announced[],
  stored: ReadonlySet<string>,
  token_sha256: string,
): Promise<string | undefined> => {
  if (announced.length === 0) return undefined
  const rows = announced.map((artifact) => ({
    ...artifact,
    artifact_id: uuidv7(),
    status: artifact.uri !== undefined ? 'external' : stored.has(artifact.sha256) ? 'stored' : 'pending',
  }))
  const given = JSON.stringify(rows)
  const ours = sql`i.operation_id = ${operation_id} and i.node_id = ${node_id} and i.attempt = ${attempt} and i.name = g.name
    and i.created_at >= (select e.created_at from operations.executions e where e.token_sha256 = ${token_sha256})`
  const { rows: other } = await tx.execute<{ name: string }>(sql`
    select g.name from jsonb_to_recordset(${given}::jsonb) g(name text, sha256 text, size bigint)
    left join operations.operation_artifact_index i on ${ours}
    group by g.name having count(distinct g.sha256) > 1 or bool_or(i.sha256 <> g.sha256 or i.size <> g.size)`)
  if (other[0]) return other[0].name
  await tx.execute(sql`
    insert into operations.operation_artifact_index (artifact_id, operation_id, node_id, attempt, name, kind, media_type, size, sha256, status, uri)
    select distinct on (g.name) g.artifact_id, ${operation_id}::uuid, ${node_id}, ${attempt}, g.name, g.kind, g.media_type, g.size, g.sha256, g.status, g.uri
    from jsonb_to_recordset(${given}::jsonb) g(artifact_id uuid, name text, kind text, media_type text, size bigint, sha256 text, status text, uri text)
    where not exists (select from operations.operation_artifact_index i where ${ours})`)
  return undefined
}

/** The size announced for these bytes, by this token's bearer or by anyone; `undefined` if no one announced them. */
export const sizeAnnounced = async (
  db: Queryable,
  sha256: string,
  token_sha256: string | undefined,
): Promise<number | undefined> => {
  const mine =
    token_sha256 === undefined
      ? sql``
      : sql`and exists (select from operations.executions e where e.token_sha256 = ${token_sha256}
          and e.operation_id = i.operation_id and e.node_id = i.node_id and e.attempt = i.attempt)`
  const { rows } = await db.execute<{ size: string }>(sql`
    select i.size from operations.operation_artifact_index i
    where i.sha256 = ${sha256} and i.status in ('pending', 'stored') and i.expires_at is null ${mine} limit 1`)
  return rows[0] && Number(rows[0].size)
}

/** The size of bytes that an attempt of the same operation produced earlier, which this token's bearer may read. */
export const sizeReadable = async (
  db: Queryable,
  sha256: string,
  token_sha256: string,
): Promise<number | undefined> => {
  const { rows } = await db.execute<{ size: string }>(sql`
    select i.size from operations.operation_artifact_index i join operations.executions e using (operation_id)
    where e.token_sha256 = ${token_sha256} and e.closed_at is null and i.sha256 = ${sha256} and i.status = 'stored'
      and i.expires_at is null limit 1`)
  return rows[0] && Number(rows[0].size)
}

export type NowStored = { operation_id: string; node_id: string; attempt: number; artifact_id: string; name: string }

/** Marks all artifacts that waited for these bytes as stored, and returns them. */
export const markStored = async (tx: Tx, sha256: string, size: number): Promise<NowStored[]> => {
  const { rows } = await tx.execute<NowStored>(sql`
    update operations.operation_artifact_index set status = 'stored' where sha256 = ${sha256} and size = ${size} and status = 'pending'
    returning operation_id, node_id, attempt, artifact_id, name`)
  return rows.toSorted((a, b) => (a.operation_id < b.operation_id ? -1 : 1))
}

/** Whether an execution token is still valid for its attempt's artifacts. */
export const isExecutionToken = async (db: Queryable, token_sha256: string): Promise<boolean> => {
  const { rows } = await db.execute(sql`
    select from operations.executions where token_sha256 = ${token_sha256} and deadline_at + interval '10 min' > clock_timestamp()`)
  return rows.length === 1
}

const BATCH = 500

/** Marks all artifacts whose operation ended that long ago, and removes the bytes to which no other one refers. */
export const expireArtifacts = async (
  db: Db,
  days: number,
  remove: (sha256: string) => Promise<unknown>,
): Promise<void> => {
  for (let count = BATCH; count === BATCH; ) {
    const { expired, gone } = await expireSome(db, days)
    for (const sha256 of gone) await remove(sha256)
    count = expired
  }
}

const expireSome = (db: Db, days: number): Promise<{ expired: number; gone: string[] }> =>
  db.transaction(async (tx) => {
    const { rows } = await tx.execute<{ sha256: string }>(sql`
      with over as (
        select t.artifact_id from operations.operation_artifact_index t join operations.operations o using (operation_id)
        where t.expires_at is null and t.status = 'stored' and ${endedBefore(days, sql`t.operation_id`)} limit ${BATCH})
      update operations.operation_artifact_index t set expires_at = clock_timestamp(), content = null from over
      where t.artifact_id = over.artifact_id returning t.sha256`)
    const gone = [...new Set(rows.map(({ sha256 }) => sha256))]
    const { rows: used } = await tx.execute<{ sha256: string }>(sql`
      select distinct sha256 from operations.operation_artifact_index
      where sha256 = any(${sql.param(gone)}::text[]) and status = 'stored' and expires_at is null`)
    return { expired: rows.length, gone: gone.filter((sha256) => !used.some((row) => row.sha256 === sha256)) }
  })
