import { AsyncLocalStorage } from 'node:async_hooks'

const TRACE = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** Whether a header is a trace context that we pass on (W3C Trace Context, version 00). */
export const isTrace = (header: unknown): header is string => typeof header === 'string' && TRACE.test(header)

const current = new AsyncLocalStorage<string>()

/** Runs the rest of a request within its trace. Calls made in it pass the trace on. */
export const withinTrace = <T>(header: unknown, run: () => T): T => (isTrace(header) ? current.run(header, run) : run())

/** Returns the current trace, for calls made within it. */
export const traceNow = (): string | undefined => current.getStore()

/** Returns the header for a call made within a trace; none outside of one. */
export const traceHeaders = (): { traceparent?: string } => {
  const traceparent = traceNow()
  return traceparent === undefined ? {} : { traceparent }
}
