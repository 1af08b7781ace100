import { rootCertificates } from 'node:tls'
import type { Tracer } from '@opentelemetry/api'
import Type from 'typebox'
import { Value } from 'typebox/value'
import packageJson from '../../package.json' with { type: 'json' }
import { ConfigError, loadConfig, readTextFile } from './config.ts'
import { loadLinks } from './links.ts'
import { isTrace, withinTrace } from './process/trace.ts'

export const schema = Type.Object({
  SIGNALBOX__TELEMETRY__OTLP_URL: Type.Optional(
    Type.String({
      pattern: '^https?://',
      description:
        'Where spans go by OTLP/HTTP, such as https://collector:4318; /v1/traces and /v1/metrics are added. Its certificate is of SIGNALBOX__TLS__CA_FILE or a public authority. None: no spans.',
    }),
  ),
  SIGNALBOX__TELEMETRY__OTLP_HEADERS_FILE: Type.Optional(
    Type.String({
      description:
        'A file with a JSON object of headers that it asks for, such as {"authorization":"Bearer …"}; they need https.',
    }),
  ),
  SIGNALBOX__TELEMETRY__METRICS_S: Type.Integer({
    ...{ default: 0, minimum: 0, maximum: 300 },
    description: 'How often, in seconds, the metrics of /metrics are sent there too. 0: never.',
  }),
})

/** Ids, kinds and results; never the caller or contents. */
export type SpanFacts = Record<string, string | number>
/** A span in progress: `traceparent` identifies it for work on its behalf. */
export type OpenSpan = { traceparent: string; end: (facts?: SpanFacts, failed?: boolean) => void }

type Begin = (name: string, parent: string | undefined, facts: SpanFacts) => OpenSpan
let begin: Begin | undefined

/** Records spans if a collector is configured; loads the SDK only then. Returns the function that sends the last. */
export const startTracing = async (app: string, env: NodeJS.ProcessEnv = process.env): Promise<() => Promise<void>> => {
  const { resource, exporterAt } = await loadCollector(app, env)
  if (resource === undefined) return async () => {}
  const [{ AlwaysOnSampler, BatchSpanProcessor, TracerProvider }, { OTLPTraceExporter }, api] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/api'),
  ])
  const provider = new TracerProvider({
    resource,
    sampler: new AlwaysOnSampler(), // whatever the caller's own flag says
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(exporterAt('/v1/traces')),
        scheduledDelayMillis: SEND_MS,
      }),
    ],
  })
  begin = beginWith(provider.getTracer('signalbox'), api)
  return () => provider.shutdown()
}

/** How to send to the collector, how often it gets metrics, and this process's name there; no name without a collector. */
export const loadCollector = async (app: string, env: NodeJS.ProcessEnv) => {
  const config = loadConfig(schema, env)
  const { SIGNALBOX__TELEMETRY__OTLP_URL: url, SIGNALBOX__TELEMETRY__METRICS_S: metrics_s } = config
  const { ca } = url?.startsWith('https:') ? loadLinks(env).tls : {}
  const headers = headersIn(config.SIGNALBOX__TELEMETRY__OTLP_HEADERS_FILE)
  if (headers && url && /^http:\/\/(?!(localhost|127\.0\.0\.1|\[::1\])(:|\/|$))/.test(url))
    throw new ConfigError('SIGNALBOX__TELEMETRY__OTLP_URL is plain: its headers, often a token, need https.')
  const { resourceFromAttributes } = url === undefined ? {} : await import('@opentelemetry/resources')
  const { version } = packageJson
  return {
    exporterAt: (path: string) => ({
      url: `${url?.replace(/\/$/, '')}${path}`,
      ...(headers && { headers }),
      // A hosted store has its certificate from a public authority.
      ...(ca && { httpAgentOptions: { keepAlive: true, ca: [ca, ...rootCertificates] } }),
    }),
    metrics_s,
    resource: resourceFromAttributes?.({ 'service.name': `signalbox-${app}`, 'service.version': version }),
  }
}

const headersIn = (file: string | undefined): Record<string, string> | undefined => {
  if (file === undefined) return undefined
  const name = 'SIGNALBOX__TELEMETRY__OTLP_HEADERS_FILE'
  const headers = parsed(readTextFile(name, file))
  if (Value.Check(Type.Record(Type.String(), Type.String()), headers)) return headers
  throw new ConfigError(`${name} names a file that is no JSON object of strings: ${file}`)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Begins a span within this trace, or a new trace if there is none. `undefined` if this process records no spans. */
export const beginSpan = (name: string, parent: string | undefined, facts: SpanFacts = {}): OpenSpan | undefined =>
  begin?.(name, parent, facts)

/** Runs work as a span of this trace, which its own calls pass on; without a trace it just runs. */
export const withSpan = async <T>(
  name: string,
  parent: unknown,
  facts: SpanFacts,
  run: () => Promise<T>,
): Promise<T> => {
  if (!isTrace(parent)) return run()
  const span = beginSpan(name, parent, facts)
  try {
    const result = await withinTrace(span?.traceparent ?? parent, run)
    span?.end()
    return result
  } catch (error) {
    span?.end({}, true)
    throw error
  }
}

const SEND_MS = 1000

const beginWith =
  (tracer: Tracer, { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace }: typeof import('@opentelemetry/api')): Begin =>
  (name, parent, facts) => {
    const [, traceId = '', spanId = ''] = isTrace(parent) ? parent.split('-') : []
    const within = traceId
      ? trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1, isRemote: true })
      : ROOT_CONTEXT
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: facts }, within)
    const own = span.spanContext()
    return {
      traceparent: `00-${own.traceId}-${own.spanId}-01`,
      end: (more = {}, failed = false) => {
        span.setAttributes(more)
        if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
        span.end()
      },
    }
  }
