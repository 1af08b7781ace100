import Type, { type Static, type TSchema } from 'typebox'
import { JsonObject, ResourceId } from '../catalog/common.ts'
import { RelationshipChange } from '../catalog/relationships.ts'
import { OperationRef, ResourceCreate } from '../catalog/resources.ts'
import { ArrayOf, Closed, text } from '../shapes.ts'

export const BULK_ITEMS = 1000

/** The body for one item of many: what its own endpoint would have answered, or the problem of its refusal. */
export const orRefused = <Done extends TSchema>(done: Done) =>
  Type.Union([
    done,
    Type.Object({ category: text('version_conflict'), code: text('version_mismatch') }, { additionalProperties: true }),
  ])

const existing = {
  resource_id: ResourceId,
  expected_version: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'The version that the change was decided on; that of a resource created in this request is 1.',
  }),
}

/** The schema of each change; each item is checked separately, so that one bad item does not stop the others. */
export const BULK_CHANGES = {
  create: ResourceCreate,
  update: Closed({
    ...existing,
    patch: Type.Unsafe<Record<string, unknown>>({ ...JsonObject, description: 'A merge patch.' }),
  }),
  relate: Closed({ ...existing, relationship_changes: Type.Array(RelationshipChange, { minItems: 1, maxItems: 100 }) }),
  retire: Closed(existing),
} as const
export type BulkOp = keyof typeof BULK_CHANGES
export type BulkChange<Op extends BulkOp> = Static<(typeof BULK_CHANGES)[Op]>

export const BulkItem = Closed({
  op: Type.Enum(['create', 'update', 'relate', 'retire']),
  change: Type.Unsafe<Record<string, unknown>>({
    ...JsonObject,
    description:
      'create: the body of POST /v1/resources. update: {resource_id, expected_version, patch}. relate: {resource_id, expected_version, relationship_changes}. retire: {resource_id, expected_version}.',
  }),
})
export type BulkItem = Static<typeof BulkItem>

export const BulkRequest = Closed(
  {
    atomic: Type.Optional(
      Type.Boolean({
        description: 'All items, or none and the first refusal with its index. Default: each by itself.',
      }),
    ),
    items: Type.Array(BulkItem, { minItems: 1, maxItems: BULK_ITEMS }),
  },
  {
    examples: [
      {
        items: [
          {
            op: 'create',
            change: { resource_id: 'eu8', type_key: 'topology.region', name: 'eu8', desired_state: { code: 'eu8' } },
          },
          {
            op: 'update',
            change: { resource_id: 'eu8', expected_version: 1, patch: { labels: { environment: 'lab' } } },
          },
        ],
      },
    ],
  },
)
export type BulkRequest = Static<typeof BulkRequest>

/** The result of one item that was not refused. */
export const BulkDone = Type.Object({
  resource_id: text('eu8'),
  version: Type.Integer(),
  applied: Type.Boolean({ description: 'False if no change was needed.' }),
  operation_ref: Type.Optional(OperationRef),
})
export type BulkDone = Static<typeof BulkDone>

export const BulkReply = Type.Object({
  results: ArrayOf({
    index: Type.Integer(),
    status: Type.Integer({ description: 'The answer that the endpoint for this single change would have given.' }),
    replayed: Type.Optional(Type.Boolean({ description: 'The first answer to this item again.' })),
    body: orRefused(BulkDone),
  }),
})
