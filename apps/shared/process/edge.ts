import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { uuidv7 } from '../ids.ts'
import type { Telemetry } from '../telemetry.ts'

const REQUEST_ID = /^[A-Za-z0-9._-]{8,64}$/

/** Returns the id of a request: the caller's if it is valid, else a new one. */
export const requestIdOf = ({ 'x-request-id': given }: IncomingHttpHeaders): string =>
  typeof given === 'string' && REQUEST_ID.test(given) ? given : uuidv7()

/** An answered request: `endpoint` is the template of its route, `ms` the time it took. */
export type Answered = { endpoint: string; method: string; status: number; request_id: string; ms: number }

/** The work of a listener on every request, for requests that are answered without the framework. */
export type Edge = {
  /** Whether the other side of the connection may call here. */
  admits: (req: IncomingMessage) => boolean
  /** Counts the request and writes its log line. */
  answered: (request: Answered) => void
}

/** Records metrics and the log line of each answered request; probes and /metrics itself are not counted. */
export const createAnswered = (telemetry: Telemetry): Edge['answered'] => {
  const requests = telemetry.counter('http_requests_total', 'Requests answered.', ['endpoint', 'status'])
  const seconds = telemetry.histogram(
    'signalbox_http_request_duration_seconds',
    'Time to answer.',
    ['endpoint'],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  )
  return ({ endpoint, method, status, request_id, ms }) => {
    if (endpoint === '/metrics' || endpoint.startsWith('/health')) return
    requests.inc({ endpoint, status })
    seconds.observe({ endpoint }, ms / 1000)
    telemetry.access({ request_id, route: endpoint, method, status, ms })
  }
}
