import Type, { type Static } from 'typebox'
import { NodeId, Nullable, NullableText, OperationId, Time } from '../operations/common.ts'
import { text } from '../shapes.ts'

/** An agent and its life. */
export const AgentView = Type.Object({
  agent: text('machine:runner/eu1-runner-01', {
    description: 'The machine, and the name that the agent gives itself; without a machine, its pool: pool:infra/one.',
  }),
  machine: text('machine:runner'),
  status: Type.Enum(['idle', 'working', 'draining', 'silent'], {
    description: 'silent: no sign of life for a minute. draining: it takes no more work.',
  }),
  pools: Type.Array(text('infra')),
  labels: Type.Record(Type.String(), Type.String(), { examples: [{ region: 'eu1' }] }),
  version: NullableText,
  concurrency: Nullable(Type.Integer({ description: 'How many pieces of work it does at once.' })),
  instances: Type.Optional(
    Type.Integer({ minimum: 2, description: 'So many processes use this name. Give each its own.' }),
  ),
  since: Time,
  seen_at: Time,
  works: Type.Integer({ description: 'How many pieces of work it has now.' }),
  work: Type.Array(
    Type.Object({
      operation_id: OperationId,
      node_id: NodeId,
      pool: text('infra'),
      attempt: Type.Integer(),
      started_at: Nullable(Time),
    }),
    { description: 'Those of its works whose operations the caller may see.' },
  ),
})
export type AgentView = Static<typeof AgentView>
export const AgentList = Type.Object({ items: Type.Array(AgentView) })
