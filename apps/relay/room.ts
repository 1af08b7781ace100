import type pg from 'pg'
import { STREAMS, type StreamName, streamName } from '../shared/events/events.ts'
import type { NatsHolder } from '../shared/events/holder.ts'
import { type Measured, type MeasuredGauge, measure } from '../shared/process/measured.ts'
import type { Telemetry } from '../shared/telemetry.ts'

const OF_POSTGRES: readonly MeasuredGauge[] = [
  ['signalbox_wal_retained_bytes', 'WAL that Postgres keeps for the replication slot that is furthest behind.'],
  ['signalbox_wal_unarchived_seconds', 'Since WAL was last archived, if archiving fails; else 0.'],
  [
    'signalbox_replica_lag_seconds',
    'How far the slowest connected replica is behind; unknown without pg_read_all_stats.',
  ],
]
const OF_NATS: readonly MeasuredGauge[] = [
  ['signalbox_stream_used_ratio', 'Share of its bytes that a stream has used; a full stream refuses events.', 'stream'],
]

/** A stalled replica no longer reports a lag, so the age of its last message counts as well. */
const POSTGRES = `
  select 'signalbox_wal_retained_bytes' as name, '{}'::text[] as labels,
    coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)::float8 as value from pg_replication_slots
  union all select 'signalbox_wal_unarchived_seconds', '{}',
    case when current_setting('archive_mode') <> 'off' and last_failed_time > coalesce(last_archived_time, '-infinity')
      then extract(epoch from clock_timestamp() - coalesce(last_archived_time, stats_reset)) else 0 end::float8
    from pg_stat_archiver
  union all select 'signalbox_replica_lag_seconds', '{}',
    case when bool_or(state is null) then 'NaN' else coalesce(max(extract(epoch from greatest(replay_lag,
      case when replay_lsn < pg_current_wal_lsn() then clock_timestamp() - reply_time end))), 0) end::float8
    from pg_stat_replication`

const readStreams = async (nats: NatsHolder, prefix: string): Promise<Measured[]> => {
  const nc = nats.get()
  if (!nc) throw new Error('NATS is unavailable')
  const { streams } = await nc.jetstreamManager()
  const found: Measured[] = []
  for (const stream of Object.keys(STREAMS) as StreamName[]) {
    // A stream that does not exist yet has no messages.
    const info = await streams.info(streamName(prefix, stream)).catch(() => undefined)
    if (!info || info.config.max_bytes <= 0) continue
    found.push({
      name: 'signalbox_stream_used_ratio',
      labels: [stream],
      value: info.state.bytes / info.config.max_bytes,
    })
  }
  return found
}

/** Measures what fills up before anything fails: WAL retained by a lost replica or a failing archive, and streams. */
export const measureRoom = (telemetry: Telemetry, pool: pg.Pool, nats: NatsHolder, prefix: string): void => {
  measure(telemetry, OF_POSTGRES, async () => (await pool.query<Measured>(POSTGRES)).rows)
  measure(telemetry, OF_NATS, () => readStreams(nats, prefix))
}
