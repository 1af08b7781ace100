import { requireScope } from '../../shared/auth/http.ts'
import type { CatalogEvent } from '../../shared/contracts/catalog/events.ts'
import { ProjectionEvents, ProjectionReply } from '../../shared/contracts/engine/projection.ts'
import { AppError } from '../../shared/errors.ts'
import { routes } from '../../shared/http/routes.ts'
import { KNOWN_EVENTS } from './apply.ts'
import { payloadFault } from './payloads.ts'
import type { CatalogProjection } from './projection.ts'

/** The HTTP endpoint of the catalog projection: the same handler and inbox as the stream's consumer. */
export const projectionRoutes = routes<{ projection: CatalogProjection }>('internal', (app, { deps }) => {
  app.post('/internal/v1/catalog-projection-events', {
    operationId: 'applyCatalogEvents',
    summary: 'Deliver events of the catalog',
    description:
      'Applies events of the catalog, each once and in the order of its resource. Missing earlier events are fetched from the catalog; those that it cannot return now are listed in `gaps`.',
    body: ProjectionEvents,
    response: { 200: ProjectionReply },
    preHandler: requireScope('projections:write'),
    handler: async (req) => {
      refuseUnknown(req.body.events)
      const reply = {
        accepted: 0,
        duplicate: 0,
        held: 0,
        gaps: [] as { resource_id: string; have: number; need: number }[],
      }
      for (const event of req.body.events) {
        const result = await deps.projection.bring(event)
        if (typeof result !== 'string') reply.gaps.push(result)
        else if (result === 'applied') reply.accepted += 1
        else if (result === 'held') reply.held += 1
        else reply.duplicate += 1
      }
      return { ...reply, applied_watermark: (await deps.projection.watermark())?.pub_seq ?? '0' }
    },
  })
})

const refuseUnknown = (events: CatalogEvent[]): void => {
  const violations = events.flatMap((event, i) => {
    const { type } = event
    if (!KNOWN_EVENTS.has(type))
      return [{ pointer: `/events/${i}/type`, code: 'enum', message: `"${type}" is not an event type of the catalog` }]
    const wrong = payloadFault(event)
    return wrong ? [{ pointer: `/events/${i}${wrong.pointer}`, code: 'invalid', message: wrong.message }] : []
  })
  const [first] = violations
  if (first)
    throw new AppError('validation_error', 'schema_violation', `${first.pointer}: ${first.message}.`, {
      violations: violations.slice(0, 100),
    })
}
