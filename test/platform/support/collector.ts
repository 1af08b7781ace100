import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Attribute = { key: string; value: { stringValue?: string; intValue?: number } }
type Point = {
  attributes?: Attribute[]
  asDouble?: number
  count?: number | string
  sum?: number
  bucketCounts?: unknown[]
}
type Metric = { name: string; sum?: Points; gauge?: Points; histogram?: Points }
type Points = { dataPoints: Point[]; isMonotonic?: boolean }
type SentMetrics = {
  resourceMetrics: { resource: { attributes: Attribute[] }; scopeMetrics: { metrics: Metric[] }[] }[]
}
type Sent = {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: { spans: { traceId: string; spanId: string; parentSpanId?: string; name: string }[] }[]
  }[]
}
export type ReceivedSpan = { app: string; trace_id: string; span_id: string; parent: string | undefined; name: string }

export type ReceivedMetric = Metric & { app: string }

const nameOf = ({ attributes }: { attributes: Attribute[] }) =>
  attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? ''

/** Receives spans and metrics as a collector does: OTLP/HTTP with JSON. Answers 404 and 415 to everything else. */
export const startCollector = async () => {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const metrics: ReceivedMetric[] = []
  const server = createServer(async (req, res) => {
    const body = (await req.toArray()).join('')
    if (req.method !== 'POST' || !['/v1/traces', '/v1/metrics'].includes(req.url ?? '')) return res.writeHead(404).end()
    if (req.headers['content-type'] !== 'application/json') return res.writeHead(415).end()
    bodies.push(body)
    const sent = JSON.parse(body) as Partial<Sent & SentMetrics>
    for (const { resource, scopeMetrics } of sent.resourceMetrics ?? [])
      for (const one of scopeMetrics.flatMap((scope) => scope.metrics)) metrics.push({ app: nameOf(resource), ...one })
    for (const { resource, scopeSpans } of sent.resourceSpans ?? []) {
      const app = nameOf(resource)
      for (const one of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ app, trace_id: one.traceId, span_id: one.spanId, parent: one.parentSpanId, name: one.name })
    }
    return res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    metrics,
    bodies,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
