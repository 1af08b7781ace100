import type { Attributes, HrTime } from '@opentelemetry/api'
import type { DataPoint, Histogram, MetricData, MetricProducer } from '@opentelemetry/sdk-metrics'
import type { Registry } from 'prom-client'
import { loadCollector } from './tracing.ts'

/** A value as prom-client returns it: buckets of a histogram are separate, cumulative values. */
type Value = { metricName?: string; labels: Attributes; value: number }

/**
 * Also sends the metrics of this process to the collector, if configured: the names, labels and values that /metrics
 * shows, from the same registry. Only then is the SDK loaded. Returns the function that sends them a last time.
 */
export const startMetering = async (
  app: string,
  registry: Registry,
  env: NodeJS.ProcessEnv = process.env,
): Promise<() => Promise<void>> => {
  const { metrics_s, resource, exporterAt } = await loadCollector(app, env)
  if (resource === undefined || metrics_s === 0) return async () => {}
  const [sdk, { OTLPMetricExporter }] = await Promise.all([
    import('@opentelemetry/sdk-metrics'),
    import('@opentelemetry/exporter-metrics-otlp-http'),
  ])
  const began = hrTime(Date.now() - process.uptime() * 1000)
  const producer: MetricProducer = {
    collect: async () => {
      const metrics = (await registry.getMetricsAsJSON()).map((read) =>
        metricData(sdk, read as unknown as Read, { startTime: began, endTime: hrTime(Date.now()) }),
      )
      return { resourceMetrics: { resource, scopeMetrics: [{ scope: { name: 'signalbox' }, metrics }] }, errors: [] }
    },
  }
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(exporterAt('/v1/metrics')),
    metricProducers: [producer],
    exportIntervalMillis: metrics_s * 1000,
    exportTimeoutMillis: Math.min(metrics_s * 1000, SEND_MS),
  })
  const provider = new sdk.MeterProvider({ resource, readers: [reader] })
  return () => provider.shutdown()
}

const SEND_MS = 10_000

type Read = { name: string; help: string; type: string; values: Value[] }
type Times = { startTime: HrTime; endTime: HrTime }

const hrTime = (ms: number): HrTime => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)]

const metricData = (
  { AggregationTemporality, DataPointType }: typeof import('@opentelemetry/sdk-metrics'),
  { name, help, type, values }: Read,
  times: Times,
): MetricData => {
  const common = {
    descriptor: { name, description: help, unit: '', valueType: 1 },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
  if (type === 'histogram')
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(name, values, times) }
  // Unknown values are NaN for Prometheus, which JSON cannot express.
  const known = values.filter(({ value }) => Number.isFinite(value))
  const dataPoints = known.map(({ labels, value }) => ({ ...times, attributes: labels, value }))
  return type === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...common, dataPointType: DataPointType.GAUGE, dataPoints }
}

const histograms = (name: string, values: Value[], times: Times): DataPoint<Histogram>[] => {
  const series = Map.groupBy(values, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels))
  return [...series].map(([labels, parts]) => {
    const part = (suffix: string) => parts.find(({ metricName }) => metricName === `${name}${suffix}`)?.value ?? 0
    const buckets = parts.filter(({ metricName }) => metricName === `${name}_bucket`)
    const boundaries = buckets.slice(0, -1).map(({ labels: { le } }) => Number(le))
    const counts = buckets.map(({ value }, i) => value - (buckets[i - 1]?.value ?? 0))
    const value = { count: part('_count'), sum: part('_sum'), buckets: { boundaries, counts } }
    return { ...times, attributes: JSON.parse(labels) as Attributes, value }
  })
}
