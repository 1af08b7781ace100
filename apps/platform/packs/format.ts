import Type, { type Static } from 'typebox'
import { IntentBody } from '../../shared/contracts/operations/intents.ts'
import { Closed } from '../../shared/contracts/shapes.ts'

/** The form of a pack's tests: the planner's input and its expected output. */
const Json = Type.Record(Type.String(), Type.Unknown())
const Texts = Type.Record(Type.String(), Type.String())
const { kind, change, action, runbook, graph, labels, constraints } = IntentBody.properties

const Resource = Closed({
  id: Type.String({ minLength: 1, maxLength: 128 }),
  type: Type.String(),
  parent: Type.Optional(Type.String()),
  version: Type.Optional(Type.Integer({ minimum: 1 })),
  lifecycle_status: Type.Optional(Type.String()),
  health_status: Type.Optional(Type.String()),
  labels: Type.Optional(Texts),
  annotations: Type.Optional(Texts),
  desired_state: Type.Optional(Json),
  observed_state: Type.Optional(Json),
})

const Case = Closed({
  name: Type.String({ minLength: 1, maxLength: 200 }),
  given: Closed({
    /** The time of planning, which windows and freezes depend on. */
    at: Type.Optional(Type.String({ format: 'date-time' })),
    resources: Type.Array(Resource, { maxItems: 1000 }),
    relationships: Type.Optional(
      Type.Array(Closed({ type: Type.String(), from: Type.String(), to: Type.String() }), { maxItems: 5000 }),
    ),
    /** The body of an intent; its title and reason make no difference. */
    intent: Closed({
      ...{ kind, change, action, runbook, graph, labels, constraints },
      targets: Type.Optional(Type.Array(Closed({ resource_id: Type.String() }))),
    }),
  }),
  expect: Type.Object(
    {
      /** Ids of all nodes, in any order. */
      nodes: Type.Optional(Type.Array(Type.String())),
      /** All gates, in any order. */
      gates: Type.Optional(Type.Array(Closed({ policy: Type.String(), guards: Type.Array(Type.String()) }))),
      /** Members of `with`, by node. */
      with: Type.Optional(Type.Record(Type.String(), Json)),
      /** The code of the refusal, or part of its text. */
      refused: Type.Optional(Type.String({ minLength: 1 })),
    },
    { additionalProperties: false, minProperties: 1 },
  ),
})

export const PackTestFile = Closed({
  format: Type.Literal('signalbox/pack-test@1'),
  tests: Type.Array(Case, { minItems: 1, maxItems: 200 }),
})
export type PackTestFile = Static<typeof PackTestFile>
export type PackTest = Static<typeof Case>
