import { Context } from '@temporalio/activity'
import type { ActivityInboundCallsInterceptor } from '@temporalio/worker'
import { type SpanFacts, withSpan } from '../shared/tracing.ts'

const IDS = ['operation_id', 'node_id', 'attempt'] as const

/**
 * Records a span for each activity whose input names a trace. The workflow passes it on as data, because interceptors
 * in workflows would tie their histories to a library.
 */
export const createSpans = (): ActivityInboundCallsInterceptor => ({
  execute: (input, next) => {
    const given = (input.args[0] ?? {}) as Record<string, unknown> & { trace?: string }
    const name = `activity ${Context.current().info.activityType}`
    return withSpan(name, given.trace, idsOf(given), () => next(input))
  },
})

const idsOf = (given: Record<string, unknown>): SpanFacts =>
  Object.fromEntries(IDS.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name] as string | number]])))
