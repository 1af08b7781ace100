import { AsyncLocalStorage } from 'node:async_hooks'

const TRACE = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** Whether a header is a trace context that we pass on (W3C Trace Context, version 00). */
export const isTrace = (header: unknown): header is string => typeof header === 'string' && TRACE.test(header)

const current = new AsyncLocalStorage<string>()

/** Runs the rest of a request within its trace. The calls made in it pass it on. */
export const withinTrace = <T>(header: unknown, run: () => T): T => (isTrace(header) ? current.run(header, run) : run())

/** The trace that runs now, for the calls that are made in it. */
export const traceNow = (): string | undefined => current.getStore()

/** The header of a call that is made in a trace; none outside of one. */
export const traceHeaders = (): { traceparent?: string } => {
  const traceparent = traceNow()
  return traceparent === undefined ? {} : { traceparent }
}
