import type { Queryable } from '../../../db/client.ts'
import type { Affected } from '../../shared/contracts/catalog/affected.ts'
import type { IntentBody } from '../../shared/contracts/operations/intents.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { Mutation } from '../command/mutate.ts'
import type { OperationsDeps, PlanningDeps } from '../deps.ts'
import type { Target } from '../graph/types.ts'
import { askAffected, planIntent } from '../plans/make.ts'
import { gateView } from '../plans/rules.ts'

/** A form asks after every pause in typing: larger plans are made once, by plan-preview. */
const MOST_TARGETS = 200
const CHANGES_SHOWN = 20

export type PreviewDeps = PlanningDeps & Pick<OperationsDeps, 'db' | 'trust'>

/** What the plan of an intent is made of, asked before the transaction; undefined unless a preview is wanted. */
export const askAhead = async (deps: PreviewDeps, { dry_run }: Mutation, body: IntentBody) =>
  dry_run && body.preview ? askAffected(deps, body).catch((error: unknown) => refusalOf(error)) : undefined

type Ahead = Awaited<ReturnType<typeof askAhead>>
type Refusal = { refused: { detail: string; code: string; violations: unknown[] } }

/** The plan that the intent would have now, or why it has none. Neither is stored. */
export const planAhead = async (
  db: Queryable,
  deps: PreviewDeps,
  { caller }: Mutation,
  body: IntentBody,
  targets: Target[],
  ahead: Exclude<Ahead, undefined>,
) => {
  if (isRefusal(ahead)) return ahead
  if (targets.length > MOST_TARGETS)
    return { refused: { detail: 'Too large to preview while typing.', code: 'too_many_targets', violations: [] } }
  const intent = {
    ...pick(body, 'kind'),
    intent_id: uuidv7(),
    requester_id: caller.user_id,
    labels: body.labels ?? {},
    constraints: body.constraints ?? {},
    request: body,
  }
  try {
    const made = await planIntent(db, deps, intent, { at: deps.clock.now().toISOString(), affected: ahead })
    return {
      ...pick(made, 'counts', 'risk', 'estimates', 'warnings'),
      diff: made.diff.slice(0, CHANGES_SHOWN),
      gates: made.document.gates.map((gate) => gateView(gate, caller, intent)),
    }
  } catch (error) {
    return refusalOf(error)
  }
}

const isRefusal = (ahead: Affected | Refusal | null): ahead is Refusal => ahead !== null && 'refused' in ahead

const refusalOf = (error: unknown): Refusal => {
  if (!(error instanceof AppError)) throw error
  return { refused: { detail: error.message, code: error.code, violations: error.options.violations ?? [] } }
}
