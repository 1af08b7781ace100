import type pg from 'pg'
import { AUDIT_LOGS } from '../../db/audit.ts'
import { UNDELIVERED } from '../../db/operations/commands/undelivered.ts'
import { type Measured, type MeasuredGauge, measure } from '../shared/process/measured.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import { placeOf } from './audit/siem.ts'

const SCHEMAS = ['identity', 'credential', 'token', 'catalog', 'operations']
const CONSUMING = ['catalog', 'operations']

const GAUGES: readonly MeasuredGauge[] = [
  ['signalbox_outbox_unsequenced', 'Committed events without a number.', 'schema'],
  ['signalbox_outbox_unpublished', 'Events that are not published yet.', 'schema'],
  ['signalbox_outbox_oldest_seconds', 'Age of the oldest event that is not published yet.', 'schema'],
  ['signalbox_outbox_parked', 'Events that NATS refuses; a person decides.', 'schema'],
  ['signalbox_commands_undelivered', 'Commands that the engine has not received.'],
  ['signalbox_commands_undelivered_oldest_seconds', 'Age of the oldest command that the engine has not received.'],
  ['signalbox_commands_in_doubt', 'Commands that were sent without an answer.'],
  ['signalbox_commands_withdrawn_total', 'Commands that were withdrawn because they could not be carried out in time.'],
  ['signalbox_dead_letters', 'Events that a consumer set aside; a person decides.', 'consumer'],
  ['signalbox_held_aggregates', 'Aggregates blocked behind an event that was set aside.', 'consumer'],
  ['signalbox_audit_unsealed_oldest_seconds', 'Age of the oldest audit row without a seal.', 'schema'],
  ['signalbox_siem_behind', 'Sealed audit rows that the log system has not taken; 0 without one.', 'log'],
  ['signalbox_siem_oldest_seconds', 'Age of the oldest of these rows.', 'log'],
]

const age = (column: string) => `coalesce(extract(epoch from clock_timestamp() - min(${column})), 0)`

/** Uses the conditions of an outbox's partial indices, because the outbox is far longer than its waiting rows. */
const ofSchema = (schema: string): string => `
  select v.name, array['${schema}'] as labels, v.value from (
    select count(*) filter (where pub_seq is null) as unsequenced, count(*) filter (where parked is null) as unpublished,
      coalesce(extract(epoch from clock_timestamp() - min(occurred_at) filter (where parked is null)), 0) as oldest,
      count(parked) as parked
    from (select pub_seq, occurred_at, parked from ${schema}.outbox where pub_seq is null
      union all select pub_seq, occurred_at, parked from ${schema}.outbox where published_at is null and pub_seq is not null) w) c,
    lateral (values ('signalbox_outbox_unsequenced', unsequenced), ('signalbox_outbox_unpublished', unpublished),
      ('signalbox_outbox_oldest_seconds', oldest), ('signalbox_outbox_parked', parked)) v(name, value)`

const COMMANDS = `
  select v.name, '{}'::text[], v.value from (
    select count(*) as waiting, greatest(0, ${age('since')}) as oldest, count(*) filter (where status = 'sending') as doubt
    from ${UNDELIVERED} k) c,
    lateral (values ('signalbox_commands_undelivered', waiting), ('signalbox_commands_undelivered_oldest_seconds', oldest),
      ('signalbox_commands_in_doubt', doubt)) v(name, value)`

const WITHDRAWN = `
  select 'signalbox_commands_withdrawn_total', '{}'::text[], count(*) from operations.operation_commands where status = 'withdrawn'`

const lettersOf = (schema: string): string => `
  select v.name, array[consumer], v.value from (
    select consumer, count(*) as letters, count(distinct (agg_type, agg_id)) as held
    from ${schema}.dead_letter where released_at is null group by consumer) c,
    lateral (values ('signalbox_dead_letters', letters), ('signalbox_held_aggregates', held)) v(name, value)`

const unsealedOf = ({ app, table }: { app: string; table: string }): string =>
  `select 'signalbox_audit_unsealed_oldest_seconds', array['${app}'], ${age('at')} from ${table} where seal_seq is null`

/** By its ends, not by a count: a log may have millions of rows when its export begins. */
const unsentOf = ({ table }: { table: string }): string => `
  select v.name, array['${table}'], v.value from (
    select coalesce((select next from operations.relay_state where name = '${placeOf(table)}'), 1) as next) p,
    lateral (values
      ('signalbox_siem_behind', (select greatest(0, coalesce(max(seal_seq), 0) - p.next + 1) from ${table})),
      ('signalbox_siem_oldest_seconds', coalesce(extract(epoch from clock_timestamp()
        - (select at from ${table} where seal_seq >= p.next order by seal_seq limit 1)), 0))) v(name, value)`

const noneOf = ({ table }: { table: string }): string => `
  select name, array['${table}'], 0 from (values ('signalbox_siem_behind'), ('signalbox_siem_oldest_seconds')) v(name)`

const backlogOf = (siem: boolean): string =>
  [
    ...SCHEMAS.map(ofSchema),
    COMMANDS,
    WITHDRAWN,
    ...CONSUMING.map(lettersOf),
    ...AUDIT_LOGS.map(unsealedOf),
    ...AUDIT_LOGS.map(siem ? unsentOf : noneOf),
  ].join('\nunion all ')

const readBacklog = async (pool: pg.Pool, backlog: string): Promise<Measured[]> => {
  const { rows } = await pool.query<Measured>(backlog)
  return rows.map((row) => ({ ...row, value: Number(row.value) }))
}

/** Reports the relay's backlog and what is stuck, as metrics and in GET /v1/platform/health. `siem`: rows are exported. */
export const createLags = (pool: pg.Pool, telemetry: Telemetry, { siem = false }: { siem?: boolean } = {}) => {
  const query = backlogOf(siem)
  measure(telemetry, GAUGES, () => readBacklog(pool, query))
  return async (): Promise<Record<string, number>> => {
    const backlog = await readBacklog(pool, query)
    const sum = (name: string) => backlog.reduce((total, one) => total + (one.name === name ? one.value : 0), 0)
    return {
      events_unpublished: sum('signalbox_outbox_unpublished'),
      events_parked: sum('signalbox_outbox_parked'),
      commands_unsent: sum('signalbox_commands_undelivered'),
    }
  }
}
