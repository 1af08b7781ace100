import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Attribute = { key: string; value: { stringValue?: string; intValue?: number } }
type Sent = {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: { spans: { traceId: string; spanId: string; parentSpanId?: string; name: string }[] }[]
  }[]
}
export type ReceivedSpan = { app: string; trace_id: string; span_id: string; parent: string | undefined; name: string }

/** Receives spans as a collector does: OTLP/HTTP with JSON. Answers 404 and 415 to all else. */
export const startCollector = async () => {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const server = createServer(async (req, res) => {
    const body = (await req.toArray()).join('')
    if (req.method !== 'POST' || req.url !== '/v1/traces') return res.writeHead(404).end()
    if (req.headers['content-type'] !== 'application/json') return res.writeHead(415).end()
    bodies.push(body)
    for (const { resource, scopeSpans } of (JSON.parse(body) as Sent).resourceSpans) {
      const app = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? ''
      for (const one of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ app, trace_id: one.traceId, span_id: one.spanId, parent: one.parentSpanId, name: one.name })
    }
    return res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
