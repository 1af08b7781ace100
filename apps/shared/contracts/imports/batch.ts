import Type, { type Static } from 'typebox'
import {
  CapabilitiesCommand,
  CommandResult,
  EXAMPLE_RESULT,
  HealthObservation,
  ResourceUpdateCommand,
} from '../catalog/commands.ts'
import { JsonObject } from '../catalog/common.ts'
import { ArrayOf, Closed } from '../shapes.ts'
import { orRefused } from './bulk.ts'

export const BATCH_ITEMS = 500

/** The schema of each kind's command. Each item is checked separately, so one bad item does not stop the others. */
export const BATCH_COMMANDS = {
  apply: ResourceUpdateCommand,
  capabilities: CapabilitiesCommand,
  health: HealthObservation,
} as const

export const BatchItem = Closed({
  kind: Type.Enum(['apply', 'capabilities', 'health'], {
    description: 'Which command it is: apply-operation-result, provided-capabilities or health-observations.',
  }),
  command: Type.Unsafe<Record<string, unknown>>({
    ...JsonObject,
    description: 'The body that the endpoint of this kind takes.',
  }),
})
export type BatchItem = Static<typeof BatchItem>

export const BatchApply = Closed(
  {
    mode: Type.Enum(['independent', 'atomic'], {
      description:
        'independent: each item succeeds or fails alone. atomic: all, or none and the first refusal with its index.',
    }),
    items: Type.Array(BatchItem, { minItems: 1, maxItems: BATCH_ITEMS }),
  },
  { examples: [{ mode: 'independent', items: [{ kind: 'apply', command: EXAMPLE_RESULT }] }] },
)
export type BatchApply = Static<typeof BatchApply>

export const BatchReply = Type.Object({
  results: ArrayOf({
    index: Type.Integer(),
    status: Type.Integer({ description: 'The answer that the endpoint of this kind would have given.' }),
    replayed: Type.Optional(Type.Boolean({ description: 'The first answer to this command again, byte for byte.' })),
    body: orRefused(CommandResult),
  }),
})
