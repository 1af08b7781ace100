import { MetricsBuffer } from '@temporalio/worker'
import type { MetricName, Telemetry } from '../shared/telemetry.ts'

const DRAIN_MS = 1000
/** The SDK drops updates beyond this many between two drains. */
const HELD = 50_000

/** Labels that are kept. Others, such as ids, would create a series per operation. */
const LABELS = [
  'namespace',
  'task_queue',
  'workflow_type',
  'activity_type',
  'operation',
  'status_code',
  'failure_reason',
  'poller_type',
  'worker_type',
] as const

const SECONDS = [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

type Update = ReturnType<MetricsBuffer['retrieveUpdates']> extends Iterator<infer U> ? U : never

/**
 * Shows the Temporal SDK's own metrics, `temporal_…`, beside those of the worker: one listener, with its certificates.
 * The SDK's exporter would open a separate port without certificates.
 */
export const createEngineMetrics = (telemetry: Telemetry) => {
  const buffer = new MetricsBuffer({ maxBufferSize: HELD, useSecondsForDurations: true })
  const apply = ({ metric, value, attributes }: Update): void => {
    const { name, kind, description = '' } = metric
    const help = description || 'Of the Temporal SDK.'
    const labels = Object.fromEntries(
      LABELS.flatMap((label) => (attributes[label] === undefined ? [] : [[label, String(attributes[label])]])),
    )
    if (kind === 'counter') telemetry.counter(suffixed(name, '_total'), help, LABELS).inc(labels, value)
    else if (kind === 'histogram')
      telemetry.histogram(suffixed(name, '_seconds'), help, LABELS, SECONDS).observe(labels, value)
    else telemetry.gauge(suffixed(name, ''), help, LABELS).set(labels, value)
  }
  const drain = (): void => {
    for (const update of buffer.retrieveUpdates()) apply(update)
  }
  return {
    /** For the Runtime. */
    options: { buffer },
    /** Moves the updates to the registry each second, until the returned function is called. */
    start: (): (() => void) => {
      const timer = setInterval(drain, DRAIN_MS)
      return () => clearInterval(timer)
    },
  }
}

const suffixed = (name: string, suffix: string) => (name.endsWith(suffix) ? name : `${name}${suffix}`) as MetricName
