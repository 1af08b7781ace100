import Type, { type Static } from 'typebox'
import { Closed, text } from '../shapes.ts'
import { OperationId } from './common.ts'

/** What open gates would lose if a person or a group lost rights. */
const Id = Type.String({ minLength: 1, maxLength: 100 })
export const LosingQuery = Closed({ user_id: Type.Optional(Id), group: Type.Optional(Id), grant_id: Type.Optional(Id) })
export type LosingQuery = Static<typeof LosingQuery>

const Losing = Type.Object({
  operation_id: OperationId,
  operation_title: text('web 2.4.0 on eu1'),
  gate_id: text('go'),
  question: text('Shall the rest follow?'),
  voters_left: Type.Integer({ description: 'How many people could still vote.' }),
  votes_lost: Type.Integer({ description: 'Approvals that would no longer count.' }),
  blocked: Type.Boolean({ description: 'Too few people would be left to approve it.' }),
})
export type Losing = Static<typeof Losing>
export const LosingGates = Type.Object({ items: Type.Array(Losing) })
