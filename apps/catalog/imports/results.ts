import {
  type ImportItem,
  type ImportOutcome,
  type ImportReply,
  type ImportResult,
  OUTCOMES,
} from '../../shared/contracts/imports/imports.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, problemOf, type Violation } from '../../shared/errors.ts'
import type { Write } from '../command/request.ts'
import { asCalled, type Names } from '../document/names.ts'
import { changedPaths, escapeToken, type JsonObject, valueAt } from '../document/pointers.ts'

/** An import's reply about its items. */

export const replyOf = (results: ImportResult[]): ImportReply => {
  const counted = OUTCOMES.map((name) => [name, results.filter(({ outcome }) => outcome === name).length])
  return { results, counts: Object.fromEntries(counted) as Record<ImportOutcome, number> }
}

/** Two items with one id, or two edges to one target, would overwrite each other at every repeat if they differ. */
export const refuseTwins = (items: readonly ImportItem[]): void => {
  const first = new Map<string, number>()
  const violations = items.flatMap((item, index): Violation[] => {
    const edges = edgeTwins(item, `/items/${index}/relationships`)
    const before = first.get(item.external_id)
    if (before === undefined) first.set(item.external_id, index)
    if (before === undefined || equalJson(items[before], item)) return edges
    const message = `is also the id of item ${before}, which has other content`
    return [...edges, { pointer: `/items/${index}/external_id`, code: 'schema_violation', message }]
  })
  const [twin] = violations
  if (!twin) return
  throw new AppError('validation_error', 'schema_violation', `${twin.pointer} ${twin.message}.`, {
    status: 400,
    violations: violations.slice(0, 100),
    hint: 'Send each object of the source once, or identically each time.',
  })
}

const edgeTwins = ({ relationships = [] }: ImportItem, at: string): Violation[] => {
  const first = new Map<string, number>()
  return relationships.flatMap(({ properties = {}, ...edge }, index): Violation[] => {
    const key = JSON.stringify([edge.type_key, edge.direction ?? 'out', edge.target_external_id, edge.target_id])
    const before = first.get(key)
    if (before === undefined) first.set(key, index)
    if (before === undefined || equalJson(relationships[before]?.properties ?? {}, properties)) return []
    const message = `contradicts the properties of edge ${before}, which has the same type and target`
    return [{ pointer: `${at}/${index}/properties`, code: 'schema_violation', message }]
  })
}

/** The result of an item left for another request because the time is over. */
export const deferred = ({ external_id }: ImportItem, index: number): ImportResult => ({
  index,
  external_id,
  outcome: 'deferred',
  diff: [],
})

/** The reply of a rehearsal: ids generated in it lead nowhere, so resources carry the source's names. */
export const rehearsed = ({ results, counts }: ImportReply, made: Names): ImportReply => ({
  counts,
  results: results.map(({ resource_id, diff, ...result }) => ({
    ...result,
    ...(resource_id !== undefined && !made.has(resource_id) && { resource_id }),
    diff: diff.map(({ path, ...change }) => ({
      path: asCalled(path, made, escapeToken),
      ...Object.fromEntries(
        Object.entries(change).map(([side, value]) => [
          side,
          typeof value === 'string' ? asCalled(value, made) : value,
        ]),
      ),
    })),
  })),
})

/** Combines both passes over an item; permanently missing targets become a problem of its edges. */
export const merged = (first: ImportResult, second: ImportResult, missing: string[], write: Write): ImportResult => {
  const outcome =
    second.outcome === 'unchanged' ? first.outcome : first.outcome === 'created' ? 'created' : second.outcome
  const lost = missing.length > 0 ? { problem: problemFor(targetsMissing(missing), write) } : {}
  return { ...first, ...second, ...lost, outcome, diff: [...first.diff, ...second.diff] }
}

const targetsMissing = (missing: readonly string[]) =>
  new AppError('validation_error', 'target_not_found', `Not found in this source: ${missing.slice(0, 5).join(', ')}.`, {
    violations: missing.map((pointer) => ({
      pointer,
      code: 'target_not_found',
      message: 'names no imported resource',
    })),
    hint: 'Import the targets too, or leave the relationship out.',
  })

export const problemFor = (error: AppError, { request_id, route }: Write) =>
  problemOf(error, request_id, (route.split(' ')[1] ?? '').replace('::', ':')) as unknown as NonNullable<
    ImportResult['problem']
  >

/** Pointers to every difference, with both values. */
export const differences = (before: JsonObject, after: JsonObject): ImportResult['diff'] =>
  changedPaths(before, after).map((path) => {
    const [old, next] = [valueAt(before, path), valueAt(after, path)]
    return { path, ...(old !== undefined && { before: old }), ...(next !== undefined && { after: next }) }
  })
