import Type, { type Static } from 'typebox'
import { text } from '../text.ts'
import { Nullable, Time } from './common.ts'
import { ProcedureStep } from './plans.ts'

/** The packs of this deployment and their use (operations.md 4.4). */
const PackProcedure = Type.Object({
  key: text('release'),
  kind: Type.Enum(['change', 'action', 'runbook']),
  title: text('Roll out a release'),
  resource_type: Nullable(text('fleet.host')),
  steps: Type.Array(ProcedureStep),
  gates: Type.Array(text('cutover'), { description: 'The gate policies that it asks.' }),
})
export const PackView = Type.Object({
  pack: text('fleet'),
  version: text('1.4.0'),
  digest: text('sha256:1f3a9c02'),
  status: Type.Enum(['current', 'loaded', 'retired'], {
    description:
      'New plans take the procedures of the current version. One that is loaded can be named. One that is retired is known from a time before; running operations hold their own copy.',
  }),
  loaded_at: Nullable(Time),
  procedures: Type.Array(PackProcedure, { description: 'None of a version that is retired.' }),
  used_by: Type.Object({
    operations: Type.Integer({ description: 'Operations of its plans that have not ended.' }),
    schedules: Type.Integer({ description: 'Schedules of its runbooks that have not ended; of the current version.' }),
  }),
})
export type PackView = Static<typeof PackView>
export const PackList = Type.Object({ items: Type.Array(PackView) })
