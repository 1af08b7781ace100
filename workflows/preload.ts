/**
 * Loaded once per worker, before the first workflow. The SDK formats the stack of every promise for its stack trace
 * query, frame by frame through the source map, which costs more than deciding on a node. The query `state` shows what
 * is in flight; errors keep their nearest frames.
 */
Error.stackTraceLimit = 2
