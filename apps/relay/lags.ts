import type pg from 'pg'

const SCHEMAS = ['identity', 'credential', 'token', 'catalog', 'operations']

/** What the relay has still to carry: events that are not out yet, commands that the engine has not got. */
export const readLags = async (pool: pg.Pool): Promise<Record<string, number>> => {
  const waiting = SCHEMAS.map(
    (schema) => `(select count(*) from ${schema}.outbox where published_at is null and parked is null)`,
  )
  const { rows } = await pool.query<{ events: string; parked: string; commands: string }>(
    `select ${waiting.join(' + ')} as events,
      ${waiting.map((count) => count.replace('parked is null', 'parked is not null')).join(' + ')} as parked,
      (select count(*) from operations.operation_commands where status in ('pending', 'sending')) as commands`,
  )
  const [{ events, parked, commands } = { events: 0, parked: 0, commands: 0 }] = rows
  return { events_unpublished: Number(events), events_parked: Number(parked), commands_unsent: Number(commands) }
}
