import semver from 'semver'
import type { Violation } from '../../shared/errors.ts'
import { CelError } from '../../shared/expressions/cel.ts'
import { diffTarget, isUnder, type TargetChange } from '../graph/diff.ts'
import { byText } from '../graph/graph.ts'
import { PlanRefusal } from '../graph/refusal.ts'
import type { BatchRule, Lane, Library, PlannedIntent, Procedure, ResourceType, Target } from '../graph/types.ts'

export type Matched = { lanes: Lane[]; changes: Map<string, TargetChange> }

/**
 * Finds the procedure of each target and groups the targets by it. Targets without a change get none. Refuses with
 * `unsupported_change` (and the paths) if no runbook fits, and with `parameters_invalid` if the parameters do not.
 */
export const matchTargets = (
  intent: PlannedIntent,
  targets: Target[],
  types: ReadonlyMap<string, ResourceType>,
  library: Library,
): Matched => {
  const changes = new Map<string, TargetChange>()
  const lanes = new Map<Procedure, Lane>()
  if (intent.kind === 'runbook') return matchRunbook(intent, targets, types, library)
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

/** A runbook is chosen by name and applies to all targets, or to none. */
const matchRunbook = (
  intent: PlannedIntent,
  targets: Target[],
  types: ReadonlyMap<string, ResourceType>,
  library: Library,
): Matched => {
  const procedure = findRunbook(library, intent.runbook ?? { pack: '', procedure: '' })
  const at = '/runbook/procedure'
  if (typeof procedure === 'string')
    throw new PlanRefusal('unknown_procedure', procedure, [
      { pointer: at, code: 'unknown_procedure', message: procedure },
    ])
  if (procedure.scope === 'target' && targets.length === 0)
    throw new PlanRefusal(
      'no_targets',
      `The runbook ${laneName(procedure)} runs once per target, and the intent has no targets.`,
    )
  const changes = new Map(
    targets.map((target) => [target.resource_id, diffTarget(target, types.get(target.type_key), intent)]),
  )
  const refused = targets.flatMap((target) => {
    const message = whenRefuses(procedure, target)
    return message ? [{ pointer: `/targets/${target.resource_id}`, code: 'unsupported_change', message }] : []
  })
  const [first] = refused
  if (first) throw new PlanRefusal('unsupported_change', `${laneName(procedure)} ${first.message}.`, refused)
  const lane: Lane = {
    procedure,
    batch: batchOf(procedure, intent.constraints.batch as Partial<BatchRule> | undefined),
    params: paramsOf(intent, procedure),
    targets,
    diffs: new Map([...changes].map(([id, { diff }]) => [id, diff])),
  }
  return { lanes: [lane], changes }
}

/** Returns the named runbook, in its newest version unless one is given; or why there is none. */
export const findRunbook = (
  { packs }: Pick<Library, 'packs'>,
  { pack, procedure, version }: NonNullable<PlannedIntent['runbook']>,
): Procedure | string => {
  const named = packs
    .filter((candidate) => candidate.pack === pack && (version === undefined || candidate.version === version))
    .sort((a, b) => semver.rcompare(a.version, b.version))
    .flatMap(({ procedures }) => procedures)
    .filter(({ key }) => key === procedure)
  const name = `${pack}${version === undefined ? '' : `@${version}`}/${procedure}`
  if (named.length === 0) return `There is no procedure ${name}.`
  return named.find(({ kind }) => kind === 'runbook') ?? `The procedure ${name} is not a runbook.`
}

/** An intent may split its targets differently, but must not drop the author's canary. */
const batchOf = ({ batch, scope }: Procedure, asked: Partial<BatchRule> | undefined): BatchRule | undefined => {
  if (scope === 'plan') return undefined
  if (!asked) return batch
  const canary = Math.max(batch?.canary ?? 0, asked.canary ?? 0)
  return { size: 1000, max_failures: 0, ...batch, ...asked, canary }
}

export const laneName = ({ pack, version, key }: Procedure): string => `${pack}@${version}/${key}`

/** Returns the procedure for a target, or why there is none. Nearest type first, then priority, then version. */
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
    return when.test({ target }) ? undefined : `requires ${when.source}`
  } catch (error) {
    if (error instanceof CelError) return `cannot evaluate ${when.source}: ${error.message}`
    throw error
  }
}

/** Returns the parameters with defaults filled in; a change finds its patch among them if the procedure declares it. */
const paramsOf = (intent: PlannedIntent, procedure: Procedure): Record<string, unknown> => {
  const given = (intent.action ?? intent.runbook ?? intent.change)?.parameters
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
      `The parameters are not valid for ${laneName(procedure)}: ${first?.pointer} ${first?.message}.`,
      violations.map((violation) => ({ ...violation, pointer: at + violation.pointer })),
    )
  }
  return params
}
