import { type Logger, pino, stdSerializers } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, type OpenMetricsContentType, Registry } from 'prom-client'
import Type from 'typebox'
import packageJson from '../../package.json' with { type: 'json' }
import { loadConfig } from './config.ts'

export type { Logger }

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export const schema = Type.Object({
  SIGNALBOX_LOG_LEVEL: Type.Enum(LEVELS, { default: 'info', description: 'The lowest level of the lines in the log.' }),
})

export const loadLogLevel = (env: NodeJS.ProcessEnv = process.env) => loadConfig(schema, env).SIGNALBOX_LOG_LEVEL

/** Members that no log line may contain (reliability.md 7). One list for every app. */
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

/** The specification names these; all our other metrics have our prefix, and the Temporal SDK's have its own. */
type GivenMetric =
  | 'http_requests_total'
  | 'token_refreshed_total'
  | 'token_refresh_attempts_total'
  | 'csrf_errors_total'
  | 'user_login_total'
export type MetricName = `signalbox_${string}` | `temporal_${string}` | GivenMetric

/** One answered request: `route` is the template, never the path. */
export type AccessLine = { request_id: string; route: string; method: string; status: number; ms: number }

const FLUSH_MS = 100
const CHUNK_BYTES = 8192
let shared_output: ReturnType<typeof pino.destination> | undefined

/**
 * Standard output, written in chunks: a system call per line would cost a busy app more than the line itself. Buffered
 * lines are written every 100 ms and when the process ends normally.
 */
const output = () => {
  shared_output ??= pino.destination({ dest: 1, sync: false, minLength: CHUNK_BYTES, periodicFlush: FLUSH_MS })
  return shared_output
}

let last_ms = 0
let last_text = ''
/** Returns the time as the log writes it; cached, because many lines fall into one millisecond. */
const isoNow = (): string => {
  const now = Date.now()
  if (now !== last_ms) {
    last_ms = now
    last_text = new Date(now).toISOString()
  }
  return last_text
}

export type Telemetry = ReturnType<typeof createTelemetry>

/** Creates the JSON log (standard output) and the Prometheus registry of an app. */
export const createTelemetry = (app: string, { level = loadLogLevel() }: { level?: string } = {}) => {
  const common = {
    level,
    base: { app },
    timestamp: () => `,"time":"${isoNow()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    // Libraries such as the Temporal SDK log failures as `error`, which would otherwise be written as {}.
    serializers: { error: stdSerializers.err },
  }
  const log = pino({ ...common, redact: { paths: REDACT, censor: '•••' } }, output())
  const access_head = `{"level":"info","time":"`
  const access_app = `","app":${JSON.stringify(app)},"request_id":`
  const metrics = new Registry()
  metrics.setDefaultLabels({ app })
  /** The histograms that have exemplars, as OpenMetrics. */
  const open_metrics = new Registry<OpenMetricsContentType>()
  open_metrics.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  open_metrics.setDefaultLabels({ app })
  // By default it samples the clock a hundred times a second in every process of the system.
  collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: 100 })
  const registers = [metrics]
  const { version } = packageJson
  new Gauge({ name: 'signalbox_build_info', help: 'The running version.', labelNames: ['version', 'node'], registers })
    .labels({ version, node: process.version })
    .set(1)
  // An app with two listeners declares the same metric twice; both count on the same one.
  const existing = <T>(name: string) => metrics.getSingleMetric(name) as T | undefined
  return {
    app,
    log,
    /**
     * Writes the line of one answered request, in the form of all others. Its members are a closed set, so none needs
     * redaction, and it is assembled by hand, because every request of every app writes one.
     */
    access: ({ request_id, route, method, status, ms }: AccessLine): void => {
      if (!log.isLevelEnabled('info')) return
      output().write(
        `${access_head}${isoNow()}${access_app}${JSON.stringify(request_id)},"route":${JSON.stringify(route)},` +
          `"method":${JSON.stringify(method)},"status":${status},"ms":${Math.round(ms * 10) / 10},"msg":"request"}\n`,
      )
    },
    metrics,
    open_metrics,
    counter: <L extends string = never>(name: MetricName, help: string, labelNames: readonly L[] = []) =>
      existing<Counter<L>>(name) ?? new Counter({ name, help, labelNames, registers }),
    gauge: <L extends string = never>(name: MetricName, help: string, labelNames: readonly L[] = []) =>
      existing<Gauge<L>>(name) ?? new Gauge({ name, help, labelNames, registers }),
    /** Shows a value that is read when the metrics are scraped. */
    reading: (name: MetricName, help: string, read: () => number): void => {
      const gauge = existing<Gauge>(name) ?? new Gauge({ name, help, registers })
      Object.assign(gauge, { collect: () => gauge.set(read()) })
    },
    histogram: <L extends string = never>(
      name: MetricName,
      help: string,
      labelNames: readonly L[] = [],
      buckets?: number[],
      enableExemplars = false,
    ) => {
      const before = existing<Histogram<L>>(name)
      if (before) return before
      const options = { name, help, labelNames, enableExemplars, ...(buckets && { buckets }) }
      const made = new Histogram<L>({ ...options, registers: enableExemplars ? [open_metrics] : registers })
      if (enableExemplars) metrics.registerMetric(made)
      return made
    },
  }
}

/** How far a projection lags behind the log that feeds it, by its consumer. */
export const lagGauge = ({ gauge }: Pick<Telemetry, 'gauge'>) =>
  gauge('signalbox_projection_lag_seconds', 'Age of the oldest event that is not yet applied.', ['consumer'])

/**
 * The metrics as the reader accepts them. Only OpenMetrics, which Prometheus asks for, has exemplars. prom-client would
 * write it too, but rename the counters for good.
 */
export const exposition = async (
  { metrics, open_metrics }: Telemetry,
  accept = '',
): Promise<{ type: string; text: string }> => {
  if (!accept.includes('application/openmetrics-text'))
    return { type: metrics.contentType, text: await metrics.metrics() }
  const texts = metrics
    .getMetricsAsArray()
    .map(({ name }) => (open_metrics.getSingleMetric(name) ? open_metrics : metrics).getSingleMetricAsString(name))
  const text = (await Promise.all(texts)).join('\n').replaceAll(/^(# (?:HELP|TYPE) \w+)_total /gm, '$1 ')
  return { type: open_metrics.contentType, text: `${text}\n# EOF\n` }
}
