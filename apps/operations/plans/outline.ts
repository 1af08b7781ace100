import type { Queryable } from '../../../db/client.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Affected } from '../../shared/contracts/catalog/affected.ts'
import type { IntentBody } from '../../shared/contracts/operations/intents.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { PlanningDeps, Uses } from '../deps.ts'
import type { Target } from '../graph/types.ts'
import type { Outline } from '../intents/create.ts'
import { listConflicts } from './conflicts.ts'
import { askAffected, planIntent } from './make.ts'
import { gateView } from './rules.ts'

/** A form asks after every pause in typing; larger plans are made only once, by plan-preview. */
const MOST_TARGETS = 200
const CHANGES_SHOWN = 20

type Deps = PlanningDeps & Uses<'db' | 'trust'>
type Refusal = { refused: { detail: string; code: string; violations: unknown[] } }

/** Returns the plan that an intent would have now, or why it has none. Neither is stored. */
export const outlineOf =
  (deps: Deps): Outline =>
  async ({ dry_run, caller }, body) => {
    if (!dry_run || !body.preview) return undefined
    const affected = await askAffected(deps, body).catch((error: unknown) => refusalOf(error))
    return (tx, targets) => outlinePlan(tx, deps, caller, body, targets, affected)
  }

const outlinePlan = async (
  db: Queryable,
  deps: Deps,
  caller: Caller,
  body: IntentBody,
  targets: Target[],
  affected: Affected | Refusal | null,
) => {
  if (isRefusal(affected)) return affected
  if (targets.length > MOST_TARGETS)
    return {
      refused: {
        detail: `${targets.length} targets: at most ${MOST_TARGETS} are previewed without a plan. Create the intent and its plan.`,
        code: 'too_many_targets',
        violations: [],
      },
    }
  const intent = {
    ...pick(body, 'kind'),
    intent_id: uuidv7(),
    requester_id: caller.user_id,
    labels: body.labels ?? {},
    constraints: body.constraints ?? {},
    request: body,
  }
  try {
    const made = await planIntent(db, deps, intent, { at: deps.clock.now().toISOString(), affected })
    return {
      ...pick(made, 'counts', 'risk', 'estimates', 'warnings'),
      conflicts: await listConflicts(db, deps, caller, {
        ...pick(made, 'document'),
        ...pick(intent, 'intent_id'),
        dependents: made.impact.dependents,
      }),
      diff: made.diff.slice(0, CHANGES_SHOWN),
      gates: made.document.gates.map((gate) => gateView(gate, caller, intent)),
    }
  } catch (error) {
    return refusalOf(error)
  }
}

const isRefusal = (affected: Affected | Refusal | null): affected is Refusal =>
  affected !== null && 'refused' in affected

const refusalOf = (error: unknown): Refusal => {
  if (!(error instanceof AppError)) throw error
  return { refused: { detail: error.message, code: error.code, violations: error.options.violations ?? [] } }
}
