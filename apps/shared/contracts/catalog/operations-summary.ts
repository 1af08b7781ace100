import Type, { type Static } from 'typebox'
import { AsOf, nullable, Time } from './common.ts'

/** Which operations touched a resource: the references, nothing of their history. */
export const OperationsSummary = Type.Object({
  counts: Type.Record(Type.String(), Type.Integer()),
  last: Type.Array(
    Type.Object({
      operation_id: Type.String(),
      kind: Type.String(),
      title: Type.String(),
      status: Type.String(),
      started_at: nullable(Time),
      ended_at: nullable(Time),
      version_from: nullable(Type.Integer()),
      version_to: nullable(Type.Integer()),
    }),
  ),
  as_of: AsOf,
})
export type OperationsSummary = Static<typeof OperationsSummary>
