/**
 * Loaded once per worker, before the first workflow. The SDK formats the stack of every promise for its stack trace
 * query, frame by frame through the source map. That costs more than deciding on a node. The query `state` says what is
 * in flight; of an error the nearest frames stay.
 */
Error.stackTraceLimit = 2
