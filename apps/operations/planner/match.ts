import semver from 'semver'
import { CelError } from '../../shared/cel.ts'
import type { Violation } from '../../shared/errors.ts'
import { diffTarget, isUnder, type TargetChange } from './diff.ts'
import { byText } from './order.ts'
import {
  type BatchRule,
  type Lane,
  type Library,
  type PlannedIntent,
  PlanRefusal,
  type Procedure,
  type ResourceType,
  type Target,
} from './types.ts'

export type Matched = { lanes: Lane[]; changes: Map<string, TargetChange> }

/**
 * Finds the procedure of each target and groups the targets by it. Targets without a change get none. Refuses with
 * `unsupported_change` (and the paths) when nothing fits, with `parameters_invalid` when the parameters do not.
 */
export const matchTargets = (
  intent: PlannedIntent,
  targets: Target[],
  types: ReadonlyMap<string, ResourceType>,
  library: Library,
): Matched => {
  const changes = new Map<string, TargetChange>()
  const lanes = new Map<Procedure, Lane>()
  const violations: Violation[] = []
  for (const target of targets) {
    const change = diffTarget(target, types.get(target.type_key), intent)
    changes.set(target.resource_id, change)
    if (change.diff.change === 'no_change') continue
    const found = findProcedure(intent, target, change, types.get(target.type_key)?.ancestors ?? [], library)
    if (typeof found === 'string') {
      violations.push({ pointer: `/targets/${target.resource_id}`, code: 'unsupported_change', message: found })
      continue
    }
    const lane = lanes.get(found)
    if (lane) {
      lane.targets.push(target)
      lane.diffs.set(target.resource_id, change.diff)
    } else {
      lanes.set(found, {
        procedure: found,
        batch: batchOf(found, intent.constraints.batch as Partial<BatchRule> | undefined),
        params: paramsOf(intent, found),
        targets: [target],
        diffs: new Map([[target.resource_id, change.diff]]),
      })
    }
  }
  const [first] = violations
  if (first) throw new PlanRefusal('unsupported_change', first.message, violations)
  return { lanes: [...lanes.values()].sort((a, b) => byText(laneName(a.procedure), laneName(b.procedure))), changes }
}

const batchOf = ({ batch }: Procedure, asked: Partial<BatchRule> | undefined): BatchRule | undefined =>
  asked ? { canary: 0, size: 1000, max_failures: 0, ...batch, ...asked } : batch

export const laneName = ({ pack, version, key }: Procedure): string => `${pack}@${version}/${key}`

/** The procedure for a target, or the reason why there is none. Nearest type first, then priority, then version. */
const findProcedure = (
  intent: PlannedIntent,
  target: Target,
  change: TargetChange,
  ancestors: string[],
  library: Library,
): Procedure | string => {
  const paths = change.diff.fields.filter((field) => !field.noise).map((field) => field.path)
  const near: string[] = []
  for (const type of [target.type_key, ...ancestors]) {
    const candidates = library.packs
      .flatMap((pack) => pack.procedures)
      .filter((procedure) => procedure.match.resource_type === type && fits(procedure, intent, change))
      .sort(
        (a, b) => b.priority - a.priority || semver.rcompare(a.version, b.version) || byText(laneName(a), laneName(b)),
      )
    for (const procedure of candidates) {
      const uncovered = paths.filter((path) => !isUnder(path, procedure.match.paths ?? ['']))
      const refused = uncovered.length > 0 ? `does not change ${uncovered.join(', ')}` : whenRefuses(procedure, target)
      if (!refused) return procedure
      near.push(`${laneName(procedure)} ${refused}`)
    }
  }
  const what =
    intent.kind === 'action'
      ? `action "${intent.action?.action_key}"`
      : `${change.diff.change} of ${paths.join(', ') || 'nothing'}`
  const why = near.length > 0 ? near.join('; ') : 'no procedure of its type does this'
  return `No procedure fits the ${what} on ${target.name} (${target.type_key}): ${why}.`
}

const fits = ({ kind, match }: Procedure, intent: PlannedIntent, { diff }: TargetChange): boolean => {
  if (kind !== intent.kind) return false
  if (kind === 'action') return match.action === intent.action?.action_key
  return match.op === diff.change || (diff.change === 'unknown' && match.op === intent.change?.op)
}

const whenRefuses = ({ when }: Procedure, target: Target): string | undefined => {
  if (!when) return undefined
  try {
    return when.test({ target }) ? undefined : `wants ${when.source}`
  } catch (error) {
    if (error instanceof CelError) return `cannot tell whether ${when.source}: ${error.message}`
    throw error
  }
}

/** The parameters with defaults filled in; a change finds its patch among them, where the procedure declares it. */
const paramsOf = (intent: PlannedIntent, procedure: Procedure): Record<string, unknown> => {
  const given = intent.kind === 'action' ? intent.action?.parameters : intent.change?.parameters
  const params: Record<string, unknown> = structuredClone(given ?? {})
  const declared = procedure.parameters.properties
  const patch = intent.change?.desired_state_patch
  if (patch && typeof declared === 'object' && declared !== null && Object.hasOwn(declared, 'desired_state_patch'))
    params.desired_state_patch = structuredClone(patch)
  const violations = procedure.checkParameters(params)
  if (violations.length > 0) {
    const [first] = violations
    const at = `/${intent.kind}/parameters`
    throw new PlanRefusal(
      'parameters_invalid',
      `The parameters do not fit ${laneName(procedure)}: ${first?.pointer} ${first?.message}.`,
      violations.map((violation) => ({ ...violation, pointer: at + violation.pointer })),
    )
  }
  return params
}
