import Type from 'typebox'
import { CatalogEvent } from '../catalog/events.ts'
import { Closed, text } from '../shapes.ts'

/** The HTTP endpoint of the catalog projection (operations.md 9.2). */
export const ProjectionEvents = Closed(
  {
    events: Type.Array(CatalogEvent, {
      minItems: 1,
      maxItems: 500,
      description: 'As the catalog publishes them on its stream and in GET /internal/v1/events.',
    }),
  },
  {
    examples: [
      {
        events: [
          {
            event_id: '0195f0c2-0000-7000-8000-000000000005',
            type: 'health.changed',
            schema_version: 1,
            occurred_at: '2026-01-31T12:00:00.000000Z',
            pub_seq: null,
            agg_type: 'health',
            agg_id: 'eu1-web-01',
            agg_version: 1,
            request_id: null,
            resource_id: 'eu1-web-01',
            type_key: 'fleet.host',
            version: 1,
            previous_version: null,
            generation: 1,
            actor: 'svc:fleet',
            command_id: null,
            operation_id: null,
            evidence_refs: [],
            status: 'healthy',
            previous_status: 'unknown',
            reason: 'observed',
            checks_changed: ['http'],
          },
        ],
      },
    ],
  },
)

export const ProjectionReply = Type.Object({
  accepted: Type.Integer(),
  duplicate: Type.Integer({ description: 'Already known, or older than the known version.' }),
  held: Type.Integer({
    description: 'Set aside behind an earlier event of the same object that a person must release.',
  }),
  gaps: Type.Array(Type.Object({ resource_id: text('eu1-web-01'), have: Type.Integer(), need: Type.Integer() }), {
    description: 'Not applied: earlier events are missing, and the catalog could not return them now.',
  }),
  applied_watermark: text('1042', { description: "Position in the catalog's log up to which no event is missing." }),
})
