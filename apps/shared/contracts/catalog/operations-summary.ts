import Type from 'typebox'
import { ArrayOf, text } from '../shapes.ts'
import { nullable, ReadAsOf, Time } from './common.ts'

/** Which operations touched a resource: references only, without their history. */
export const OperationsSummary = Type.Object({
  counts: Type.Record(Type.String(), Type.Integer()),
  last: ArrayOf({
    operation_id: text('0195f0c2-0000-7000-8000-000000000001'),
    kind: text('change'),
    title: text('web 2.4.0 on eu1'),
    status: text('succeeded'),
    started_at: nullable(Time),
    ended_at: nullable(Time),
    version_from: nullable(Type.Integer()),
    version_to: nullable(Type.Integer()),
  }),
  as_of: ReadAsOf,
})
