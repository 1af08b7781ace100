import Type, { type Static, type TSchema } from 'typebox'
import { GraphNode, policyMembers } from '../../shared/contracts/operations/intents.ts'
import { Closed, OptionalClosed } from '../../shared/contracts/shapes.ts'
import { pick } from '../../shared/data/pick.ts'

/** The shape of a procedure pack (operations.md 4.1) and of the other files of this app's policy folder (4.2, 3.5). */
const Any = Type.Unknown()
const JsonObject = Type.Record(Type.String(), Any)
const Name = (pattern: string) => Type.String({ pattern })
const Cel = Type.String({ minLength: 1, maxLength: 2048 })
const Key = Name('^[a-z][a-z0-9_-]{0,62}$')
const Group = Name('^[a-z][a-z0-9-]{1,62}$')
const Pointer = Name('^(/([^~/]|~[01])*)+$')
const Words = <T extends string>(...words: T[]) => Type.Unsafe<T>(Type.Enum(words))

/** The form of names of outputs and secrets. Loading permits others: packs in use have them, and "pack check" warns. */
export const MEMBER = '^[a-z][a-z0-9_]{0,62}$'
const Members = <T extends TSchema>(of: T) => Type.Optional(Type.Record(Name(MEMBER), of))

/** The properties that steps, defaults of steps, and nodes of graph intents share. */
const stepProperties = {
  ...pick(GraphNode.properties, 'executor', 'pool', 'with', 'when', 'idempotent', 'timeouts', 'retry', 'on_failure'),
  ...pick(GraphNode.properties, 'join', 'skippable', 'tags', 'estimate_s', 'risk', 'outputs_schema', 'compensate'),
  ...pick(GraphNode.properties, 'catalog'),
  secrets: Members(Any),
  outputs: Members(Type.Union([Pointer, Type.Literal('')])),
}

/** A look at the real target before its first effect; `expect` names places of the raw result and their planned values. */
const Read = Closed({
  executor: Type.Optional(Key),
  with: Type.Optional(JsonObject),
  expect: Type.Record(Pointer, Any, { minProperties: 1, maxProperties: 20 }),
})

const Step = Closed({
  id: Name('^[a-z][a-z0-9_-]{0,31}$'),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  needs: Type.Optional(Type.Array(Type.String(), { maxItems: 50 })),
  include_if: Type.Optional(Cel),
  ...stepProperties,
})
const Match = Closed({
  resource_type: Type.Optional(Name('^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+$')),
  op: Type.Optional(Words('update', 'create', 'delete', 'replace')),
  paths: Type.Optional(Type.Array(Pointer, { minItems: 1, maxItems: 100 })),
  action: Type.Optional(Key),
  when: Type.Optional(Cel),
})
const Size = Type.Union([Type.Integer({ minimum: 1, maximum: 1000 }), Name('^([1-9]|[1-9][0-9]|100)%$')])
const Batch = Closed({
  by: Type.Optional(Name('^[a-z_]+(/[^/]+)*$')),
  canary: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  size: Type.Optional(Size),
  max_failures: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
})
const Procedure = Closed({
  key: Key,
  kind: Words('change', 'action', 'runbook'),
  title: Type.String({ minLength: 1, maxLength: 200 }),
  priority: Type.Optional(Type.Integer({ minimum: -1000, maximum: 1000 })),
  scope: Type.Optional(Words('target', 'plan')),
  match: Type.Optional(Match),
  parameters: Type.Optional(JsonObject),
  lease: OptionalClosed({ mode: Words('exclusive', 'shared'), ancestors: Type.Optional(Words('shared', 'none')) }),
  order: OptionalClosed({
    relationship_types: Type.Array(Key, { minItems: 1, maxItems: 20 }),
    first: Words('dependency', 'dependent'),
  }),
  batch: Type.Optional(Batch),
  risk: Type.Optional(Closed({ base: Type.Integer({ minimum: 0, maximum: 100 }) })),
  gates: Type.Optional(
    Type.Array(
      Closed({
        policy: Key,
        at: Words('entry', 'after_canary', 'between_batches', 'before_step'),
        step: Type.Optional(Type.String()),
      }),
      { maxItems: 20 },
    ),
  ),
  read: Type.Optional(Read),
  defaults: Type.Optional(Closed(stepProperties)),
  steps: Type.Array(Step, { minItems: 1, maxItems: 50 }),
})

export const PackFile = Closed({
  format: Type.Literal('signalbox/pack@1'),
  pack: Key,
  version: Name('^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(-[0-9A-Za-z.-]+)?$'),
  title: Type.String({ minLength: 1, maxLength: 200 }),
  owners: Type.Array(Group, { minItems: 1, maxItems: 20 }),
  procedures: Type.Array(Procedure, { minItems: 1, maxItems: 100 }),
})
export type PackFile = Static<typeof PackFile>
export type ProcedureFile = Static<typeof Procedure>
export type StepFile = Static<typeof Step>

const seconds = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum })
const policyProperties = {
  ...policyMembers,
  escalation: Type.Optional(
    Type.Array(
      Closed({ after_s: seconds(1, 2_592_000), add_groups: Type.Array(Group, { minItems: 1, maxItems: 20 }) }),
      { maxItems: 10 },
    ),
  ),
  on_timeout: Type.Optional(Words('reject', 'hold', 'approve')),
  binds: Type.Optional(Type.Array(Type.String({ maxLength: 400 }), { maxItems: 50 })),
}

export const GatePolicyFile = Closed({
  format: Type.Literal('signalbox/gate-policy@1'),
  key: Key,
  version: Type.Integer({ minimum: 1 }),
  question: Type.String({ minLength: 1, maxLength: 300 }),
  applies: Type.Optional(Cel),
  place: OptionalClosed({
    at: Words('entry', 'after_canary', 'between_batches', 'before_step'),
    step: Type.Optional(Type.String()),
  }),
  ...policyProperties,
})
export type GatePolicyFile = Static<typeof GatePolicyFile>

const Day = Words('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')
const Clock = Name('^([01][0-9]|2[0-3]):[0-5][0-9]$')
const Instant = Type.String({ format: 'date-time' })
export const CalendarFile = Closed({
  format: Type.Literal('signalbox/calendar@1'),
  windows: Type.Optional(
    Type.Array(
      Closed({
        window_id: Key,
        applies: Cel,
        timezone: Type.String({ minLength: 1, maxLength: 64 }),
        days: Type.Array(Day, { minItems: 1, uniqueItems: true }),
        from: Clock,
        to: Clock,
      }),
    ),
  ),
  freezes: Type.Optional(
    Type.Array(
      Closed({
        freeze_id: Key,
        title: Type.String({ minLength: 1, maxLength: 200 }),
        applies: Cel,
        from: Instant,
        to: Instant,
        approvers: Type.Array(Group, { minItems: 1, maxItems: 20 }),
      }),
    ),
  ),
})
export type CalendarFile = Static<typeof CalendarFile>
