import Type, { type Static } from 'typebox'
import { CatalogEvent } from '../catalog/events.ts'

/** The HTTP door of the projection of the catalog (operations.md 9.2). */
export const ProjectionEvents = Type.Object(
  {
    events: Type.Array(CatalogEvent, {
      minItems: 1,
      maxItems: 500,
      description: 'As the catalog tells them on its stream and in GET /internal/v1/events.',
    }),
  },
  { additionalProperties: false },
)
export type ProjectionEvents = Static<typeof ProjectionEvents>

export const ProjectionReply = Type.Object({
  accepted: Type.Integer(),
  duplicate: Type.Integer({ description: 'Known before, or older than what is known.' }),
  gaps: Type.Array(Type.Object({ resource_id: Type.String(), have: Type.Integer(), need: Type.Integer() }), {
    description: 'Not applied: what lies between is missing, and the catalog could not give it now.',
  }),
  applied_watermark: Type.String({ description: "Position in the catalog's log up to which nothing is missing." }),
})
