import { Context } from '@temporalio/activity'
import type { ActivityInboundCallsInterceptor } from '@temporalio/worker'
import { withinTrace } from '../shared/process/trace.ts'
import { beginSpan, type SpanFacts } from '../shared/tracing.ts'

const IDS = ['operation_id', 'node_id', 'attempt'] as const

/**
 * Records a span for each activity whose input names a trace. The workflow passes it on as data, because interceptors
 * in workflows would tie their histories to a library.
 */
export const createSpans = (): ActivityInboundCallsInterceptor => ({
  execute: async (input, next) => {
    const given = (input.args[0] ?? {}) as Record<string, unknown> & { trace?: string }
    if (given.trace === undefined) return next(input)
    const span = beginSpan(`activity ${Context.current().info.activityType}`, given.trace, idsOf(given))
    try {
      const result = await withinTrace(span?.traceparent ?? given.trace, () => next(input))
      span?.end()
      return result
    } catch (error) {
      span?.end({}, true)
      throw error
    }
  },
})

const idsOf = (given: Record<string, unknown>): SpanFacts =>
  Object.fromEntries(IDS.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name] as string | number]])))
