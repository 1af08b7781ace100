import { randomBytes } from 'node:crypto'
import type { Work } from '../../shared/contracts/engine/executions.ts'
import { isTrace } from '../../shared/process/trace.ts'

const SEND_MS = 5000
const INTERNAL = 1
const OK = 1
const ERROR = 2

type Attribute = { key: string; value: { stringValue: string } | { intValue: number } }

/**
 * The attempt as a span of the work's trace: `traceparent` identifies it for all that is done for it. `end` sends it by
 * OTLP/HTTP to this collector, if one is named; a collector that is away costs only the span.
 */
export const beginAttempt = (work: Work, collector: string | undefined) => {
  const parent = isTrace(work.trace) ? work.trace : undefined
  const [, traceId = '', parentSpanId = ''] = parent?.split('-') ?? []
  const spanId = randomBytes(8).toString('hex')
  const begun = Date.now()
  if (!parent || !collector) return { traceparent: parent, end: async () => {} }
  return {
    traceparent: `00-${traceId}-${spanId}-01`,
    end: async (status: string): Promise<void> => {
      const { job, operation_id, node_id, attempt } = work
      const span = {
        ...{ traceId, spanId, parentSpanId, name: `agent ${job}`, kind: INTERNAL },
        ...{ startTimeUnixNano: `${begun}000000`, endTimeUnixNano: `${Date.now()}000000` },
        attributes: attributesOf({ operation_id, node_id, attempt, status }),
        status: { code: status === 'succeeded' ? OK : ERROR },
      }
      const resource = { attributes: attributesOf({ 'service.name': 'signalbox-agent' }) }
      await fetch(`${collector.replace(/\/$/, '')}/v1/traces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'signalbox' }, spans: [span] }] }],
        }),
        signal: AbortSignal.timeout(SEND_MS),
      }).catch(() => {})
    },
  }
}

const attributesOf = (facts: Record<string, string | number>): Attribute[] =>
  Object.entries(facts).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: value } : { stringValue: value },
  }))
