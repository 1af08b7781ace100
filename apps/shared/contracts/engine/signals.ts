import Type, { type Static } from 'typebox'
import { CommandView, DryRun, GateId, Json, Reason } from '../operations/common.ts'
import { Closed, text } from '../shapes.ts'

/** Signals from control planes to running operations, sent as services and as machines (operations.md 9.3). */
export const NodeSignal = Closed({
  name: text('eu1-web-01', { minLength: 1, maxLength: 200 }),
  payload: Type.Optional(Json),
})
export const CheckResult = Closed({
  gate_id: GateId,
  round: Type.Integer({ minimum: 1 }),
  verdict: Type.Enum(['running', 'passed', 'failed']),
  summary: Type.Optional(Type.String({ maxLength: 2000 })),
  details_url: Type.Optional(Type.String({ maxLength: 2000, pattern: '^https?://' })),
})
export type CheckResult = Static<typeof CheckResult>
export const DriftSignal = Closed({
  resource_ids: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
    minItems: 1,
    maxItems: 1000,
    description: 'Resources that have changed: the operation pauses if it would meet other versions.',
  }),
})

const base = { reason: Type.Optional(Reason), dry_run: DryRun }
export const SignalBody = Type.Union(
  [
    Closed({ ...base, type: Type.Literal('external_check_result'), body: CheckResult }),
    Closed({ ...base, type: Type.Literal('node_signal'), body: NodeSignal }),
    Closed({ ...base, type: Type.Literal('catalog_drift'), body: DriftSignal }),
  ],
  {
    examples: [
      {
        type: 'external_check_result',
        body: { gate_id: 'go', round: 1, verdict: 'passed', summary: 'The change is approved.' },
        reason: 'CHG-1042',
      },
    ],
  },
)
export type SignalBody = Static<typeof SignalBody>
export const SignalReply = Type.Object({ command: CommandView })
