import { setImmediate } from 'node:timers/promises'
import type { Queryable } from '../../../db/client.ts'
import {
  loadAllResources,
  loadAncestors,
  loadResources,
  loadResourcesOfType,
} from '../../../db/operations/plans/planning.ts'
import { isWithin, type Scope as Reach } from '../../shared/auth/scope.ts'
import type { IntentBody } from '../../shared/contracts/operations/intents.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError, type CodeOf, type Violation } from '../../shared/errors.ts'
import { CelError, type CelProgram, compileCondition } from '../../shared/expressions/cel.ts'
import { byText, PLACE } from '../graph/graph.ts'
import type { Resource, Scope, Target } from '../graph/types.ts'

/**
 * `within`: where the maker of the request may know resources. Elsewhere none exists for it; without, all do. `is_made`:
 * the targets that it names were known when it was made, and may have moved since.
 */
export type TargetRequest = Pick<IntentBody, 'targets' | 'graph' | 'runbook'> & {
  within?: readonly Reach[]
  is_made?: boolean
}

const refuse = (code: CodeOf<'validation_error'>, detail: string, violations: Violation[] = []) =>
  new AppError('validation_error', code, detail, { status: 422, violations })

/** Resources that an intent names but the projection does not hold, perhaps because they are too new. */
export class TargetsMissing extends AppError {
  readonly resource_ids: string[]

  constructor(named: { resource_id: string; pointer: string }[]) {
    super('validation_error', 'target_not_found', `There is no resource "${named[0]?.resource_id}".`, {
      status: 422,
      violations: named
        .slice(0, 100)
        .map(({ resource_id, pointer }) => ({
          pointer,
          code: 'target_not_found',
          message: `there is no resource "${resource_id}"`,
        })),
      hint: 'Check the ids; a resource that was just created may need a moment.',
    })
    this.resource_ids = [...new Set(named.map(({ resource_id }) => resource_id))]
  }
}

/** All of a selector's time is used up, be it by a slow condition or by a busy machine. */
export class SelectorTooSlow extends AppError {
  constructor(pointer: string, resources: number) {
    const message = `takes more than ${ALL_MS / 1000} s on ${resources} resources; simplify it.`
    const violations = [{ pointer, code: 'expression_error', message }]
    super('validation_error', 'expression_error', `${pointer}: ${message}`, { status: 422, violations })
  }
}

/**
 * Resources on which a condition fails, such as by a member that they lack. A caller that passes this list counts them
 * as not met; for all others the failure is one of the request.
 */
export type Unjudged = { resource_id: string; message: string }[]

/** Returns all targets of an intent from the projection of the catalog: named, selected, or used by a graph's nodes. */
export const resolveTargets = async (
  db: Queryable,
  request: TargetRequest,
  most: number,
  unjudged?: Unjudged,
): Promise<Target[]> => {
  const named: { resource_id: string; pointer: string }[] = []
  const found = new Map<string, Target>()
  for (const [i, entry] of (request.targets ?? []).entries()) {
    if ('resource_id' in entry) named.push({ resource_id: entry.resource_id, pointer: `/targets/${i}/resource_id` })
    else
      for (const resource of await select(db, entry.selector, `/targets/${i}/selector`, most, unjudged, request.within))
        found.set(resource.resource_id, resource)
  }
  for (const [i, node] of (request.graph?.nodes ?? []).entries())
    if (node.target_id !== undefined)
      named.push({ resource_id: node.target_id, pointer: `/graph/nodes/${i}/target_id` })
  for (const resource of await loadTargets(db, [...new Set(named.map(({ resource_id }) => resource_id))]))
    if (request.is_made || isKnownIn(request.within, resource)) found.set(resource.resource_id, resource)
  const missing = named.filter(({ resource_id }) => !found.has(resource_id))
  if (missing.length > 0) throw new TargetsMissing(missing)
  if (found.size > most) throw refuse('too_many_targets', `${found.size} targets; at most ${most} are allowed.`)
  return [...found.values()].sort((a, b) => byText(a.resource_id, b.resource_id))
}

export const isKnownIn = (within: TargetRequest['within'], { scope, type_key }: Target): boolean =>
  isWithin(within, { ...scope, type_key })

/** Returns targets by id, as far as the projection holds them. */
export const loadTargets = async (db: Queryable, resource_ids: readonly string[]): Promise<Target[]> =>
  withPlaces(db, await loadResources(db, [...resource_ids]))

/** Returns all targets that the projection holds; `undefined` if there are more than one query reads. */
export const loadAllTargets = async (db: Queryable): Promise<Target[] | undefined> => {
  const all = await loadAllResources(db, SCANNED + 1)
  return all.length > SCANNED ? undefined : withPlaces(db, all)
}

type Selector = { type_key: string; when?: string; limit?: number }

const select = async (
  db: Queryable,
  { type_key, when, limit }: Selector,
  pointer: string,
  most: number,
  unjudged: Unjudged | undefined,
  within: TargetRequest['within'],
) => {
  const condition = when === undefined ? undefined : compile(when, `${pointer}/when`)
  const of_type = await loadResourcesOfType(db, type_key, SCANNED + 1)
  if (of_type.length > SCANNED)
    throw refuse(
      'too_many_targets',
      `More than ${SCANNED} resources are of type ${type_key}; select a narrower type, or name the targets.`,
    )
  const candidates = (await withPlaces(db, of_type)).filter((target) => isKnownIn(within, target))
  const wanted = limit ?? most + 1
  if (!condition) return candidates.slice(0, wanted)
  return matchesOf(
    candidates,
    (target) => test(condition, target, `${pointer}/when`, unjudged),
    `${pointer}/when`,
    wanted,
  )
}
const SCANNED = 20_000

/** A condition may be slow on each of many targets: all of them together have this long, and others their turns. */
const ALL_MS = 4000
const TURN_MS = 10

const matchesOf = async (
  candidates: readonly Target[],
  meets: (target: Target) => boolean,
  pointer: string,
  wanted: number,
) => {
  const matching: Target[] = []
  let spent_ms = 0
  let turn = performance.now()
  for (const target of candidates) {
    if (matching.length === wanted) break
    if (meets(target)) matching.push(target)
    const since = performance.now() - turn
    if (since < TURN_MS) continue
    spent_ms += since
    if (spent_ms > ALL_MS) throw new SelectorTooSlow(pointer, candidates.length)
    await setImmediate()
    turn = performance.now()
  }
  return matching
}

const expressionError = (pointer: string, message: string) =>
  refuse('expression_error', `${pointer}: ${message}`, [{ pointer, code: 'expression_error', message }])

const compile = (source: string, pointer: string): CelProgram => {
  try {
    return compileCondition(source, ['target'])
  } catch (error) {
    if (error instanceof CelError) throw expressionError(pointer, error.message)
    throw error
  }
}
const test = (condition: CelProgram, target: Target, pointer: string, unjudged: Unjudged | undefined): boolean => {
  try {
    return condition.test({ target })
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    if (!unjudged) throw expressionError(pointer, `${target.resource_id}: ${error.message}`)
    unjudged.push({ resource_id: target.resource_id, message: error.message })
    return false
  }
}

/** Returns resources with the places that contain them, derived from containment. */
const withPlaces = async (db: Queryable, resources: Resource[]): Promise<Target[]> => {
  const ancestors = await loadAncestors(db, pluck(resources, 'resource_id'))
  return resources.map((resource) => {
    const above = ancestors.get(resource.resource_id) ?? []
    const scope: Scope = { region_id: null, datacenter_id: null, layer_id: null, segment_id: null }
    for (const { resource_id, type_key } of [resource, ...above]) {
      const field = PLACE[type_key]
      if (field && scope[field] === null) scope[field] = resource_id
    }
    return { ...resource, scope, ancestors: above.map(({ resource_id }) => resource_id) }
  })
}
