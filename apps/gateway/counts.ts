import { PRIORITIES, type Priority } from '../shared/process/priority.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { Denylist, DiskWatch } from './guard/limits.ts'
import type { Feed } from './guard/revocations.ts'
import type { Streams } from './proxy/streams.ts'

export const createCounts = (telemetry: Telemetry) => ({
  rejected: telemetry.counter('signalbox_token_rejected_total', 'Tokens refused.', ['cause']),
  limited: telemetry.counter('signalbox_rate_limited_total', 'Requests over a limit.', ['class']),
  csrf_errors: telemetry.counter('csrf_errors_total', 'Requests refused by the CSRF rule.'),
  fallback: telemetry.gauge(
    'signalbox_redis_fallback_active',
    'Whether limits and revocations are local because Redis is unavailable.',
  ),
  script_seconds: telemetry.histogram('signalbox_redis_script_seconds', 'Time of a Lua script.', ['script']),
  revocation_delay: telemetry.histogram('signalbox_revocation_delay_seconds', 'From a revocation to its event here.'),
})
export type Counts = ReturnType<typeof createCounts>

/** Response times, from which the objectives are computed, with a trace as example; each class is zero before its first request. */
export const createAnswers = (telemetry: Telemetry) => {
  const answers = telemetry.histogram(
    'signalbox_gateway_answer_seconds',
    'Time to answer, by the class of the request; failed: an answer of 500 or more.',
    ['class', 'result'],
    [0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    true,
  )
  for (const priority of PRIORITIES)
    for (const result of ['answered', 'failed']) answers.zero({ class: priority, result })
  return (priority: Priority, result: 'answered' | 'failed', seconds: number, traceparent?: string): void => {
    const trace_id = traceparent?.split('-')[1]
    const labels = { class: priority, result }
    // The types expect the labels of the metric here, too.
    answers.observe({ labels, value: seconds, exemplarLabels: (trace_id ? { trace_id } : {}) as typeof labels })
  }
}

type Watched = { denylist: Denylist; disk: DiskWatch; feed: Feed; streams: Streams }

export const watchGauges = ({ reading }: Telemetry, { denylist, disk, feed, streams }: Watched) => {
  reading('signalbox_denylist_entries', 'Revoked sessions known here.', denylist.size)
  reading('signalbox_revocation_feed_age_seconds', 'Since the last event of the feed.', feed.age_s)
  reading('signalbox_disk_free_percent', 'Free space of the fullest disk under a server, as last told.', disk.free)
  reading('signalbox_sse_streams', 'Open event streams.', streams.size)
}
