import { and, asc, gt, isNotNull, sql } from 'drizzle-orm'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, type Queryable } from '../../client.ts'
import { iso } from '../expressions.ts'
import { outbox } from '../tables/index.ts'

export type LogRequest = {
  /** pub_seq, as text. */
  after: string
  aggregate?: { agg_type: string; agg_id: string; after_version: number } | undefined
  limit: number
}

/** Events as the relay publishes them: all after a position, or those of one aggregate after a version. */
export const listMessages = async (db: Queryable, { after, aggregate, limit }: LogRequest) => {
  const rows = await db
    .select({
      ...pick(outbox, 'event_id', 'type', 'schema_version'),
      occurred_at: iso(outbox.occurred_at),
      pub_seq: sql<string | null>`${outbox.pub_seq}::text`,
      ...pick(outbox, 'agg_type', 'agg_id', 'agg_version', 'request_id', 'payload'),
    })
    .from(outbox)
    .where(
      aggregate
        ? and(
            equals(outbox, { agg_type: aggregate.agg_type, agg_id: aggregate.agg_id }),
            gt(outbox.agg_version, aggregate.after_version),
          )
        : and(isNotNull(outbox.pub_seq), gt(outbox.pub_seq, BigInt(after))),
    )
    .orderBy(aggregate ? asc(outbox.agg_version) : asc(outbox.pub_seq))
    .limit(limit)
  const { rows: heads } = await db.execute<{ last: string }>(
    sql`select coalesce(max(pub_seq), 0)::text as last from ${outbox}`,
  )
  return {
    items: rows.map(({ payload, ...envelope }) => ({ ...envelope, ...payload })),
    last_pub_seq: heads[0]?.last ?? '0',
  }
}
