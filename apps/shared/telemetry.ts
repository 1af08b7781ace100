import { type Logger, pino } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type { Logger }

/** What no log line may hold (reliability.md 7). One list for every app. */
const REDACT = [
  'authorization',
  'cookie',
  'password',
  'new_password',
  'current_password',
  'refresh_token',
  'access_token',
  'csrf_token',
  'device_token',
  'enrolment_token',
  'token',
  'secret',
]
  .flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `headers["${name}"]`])
  .concat('headers["set-cookie"]', 'headers["x-csrf-token"]', 'headers["idempotency-key"]')

/** The log and the metrics of one process. */
export type Telemetry = ReturnType<typeof createTelemetry>

/** Creates the JSON log (standard output) and the Prometheus registry of an app. */
export const createTelemetry = (
  app: string,
  { level = process.env.SIGNALBOX_LOG_LEVEL ?? 'info' }: { level?: string } = {},
) => {
  const log = pino({
    level,
    base: { app },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    redact: { paths: REDACT, censor: '•••' },
    formatters: { level: (label) => ({ level: label }) },
  })
  const metrics = new Registry()
  metrics.setDefaultLabels({ app })
  collectDefaultMetrics({ register: metrics })
  const registers = [metrics]
  // An app with two listeners states the same metric twice: both count on the one.
  const existing = <T>(name: string) => metrics.getSingleMetric(name) as T | undefined
  return {
    app,
    log,
    metrics,
    counter: <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []) =>
      existing<Counter<L>>(name) ?? new Counter({ name, help, labelNames, registers }),
    gauge: <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []) =>
      existing<Gauge<L>>(name) ?? new Gauge({ name, help, labelNames, registers }),
    histogram: <L extends string = never>(
      name: string,
      help: string,
      labelNames: readonly L[] = [],
      buckets?: number[],
    ) =>
      existing<Histogram<L>>(name) ?? new Histogram({ name, help, labelNames, registers, ...(buckets && { buckets }) }),
  }
}
