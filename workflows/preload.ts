/**
 * Loaded once per worker, before the first workflow. For its stack trace query the SDK formats the stack of every
 * promise through the source map: this costs more than deciding on a node. The query `state` shows what is in flight;
 * errors keep their nearest frames.
 */
Error.stackTraceLimit = 2
