import type { ErrorObject } from 'ajv'
import {
  type ImportItem,
  type ImportOutcome,
  type ImportReply,
  type ImportResult,
  OUTCOMES,
} from '../../shared/contracts/imports/imports.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, problemOf, type Violation } from '../../shared/errors.ts'
import { CATALOG_CODES } from '../../shared/http/edge-codes.ts'
import { invalid } from '../../shared/http/problems.ts'
import type { Write } from '../command/request.ts'
import { asCalled, type Names } from '../document/names.ts'
import { changedPaths, escapeToken, type JsonObject, valueAt } from '../document/pointers.ts'

/** An import's reply about its items. */

export const replyOf = (results: ImportResult[]): ImportReply => {
  const counted = OUTCOMES.map((name) => [name, results.filter(({ outcome }) => outcome === name).length])
  return { results, counts: Object.fromEntries(counted) as Record<ImportOutcome, number> }
}

/** Returns where an item violates its schema; `undefined` if it fits. */
export type CheckItem = (item: unknown) => ErrorObject[] | undefined

/** The results of items that are refused by their form alone, by index: they keep none of the others from being imported. */
export const refusedIn = (items: readonly ImportItem[], check: CheckItem, write: Write): Map<number, ImportResult> => {
  const twins = twinsIn(items)
  return new Map(
    [...items.entries()].flatMap(([index, item]): [number, ImportResult][] => {
      const errors = check(item)
      const error = errors ? invalid(errors, 'body', CATALOG_CODES) : contradictionOf(items, item, twins)
      if (!error) return []
      const external_id = typeof item.external_id === 'string' ? item.external_id : ''
      return [[index, { index, external_id, outcome: 'refused', diff: [], problem: problemFor(error, write) }]]
    }),
  )
}

/** Ids of items that contradict one another, each with its first item and the first that differs from that. */
const twinsIn = (items: readonly ImportItem[]): Map<string, [number, number]> => {
  const first = new Map<string, number>()
  const twins = new Map<string, [number, number]>()
  for (const [index, { external_id }] of items.entries()) {
    const before = first.get(external_id)
    if (before === undefined) first.set(external_id, index)
    else if (!twins.has(external_id) && !equalJson(items[before], items[index])) twins.set(external_id, [before, index])
  }
  return twins
}

/** Two items with one id, or two edges to one target, would overwrite each other at every repeat if they differ. */
const contradictionOf = (items: readonly ImportItem[], item: ImportItem, twins: ReturnType<typeof twinsIn>) => {
  const [one, other] = twins.get(item.external_id) ?? []
  const message = `is also the id of item ${one !== undefined && equalJson(items[one], item) ? other : one}, which has other content`
  const twin = one === undefined ? [] : [wrong('/external_id', message)]
  const violations = [...twin, ...edgeFaults(item)]
  const [first] = violations
  if (!first) return undefined
  return new AppError('validation_error', 'schema_violation', `${first.pointer} ${first.message}.`, {
    status: 400,
    violations,
    hint: 'Send each object of the source once, or identically each time, and each edge with one target.',
  })
}

const wrong = (pointer: string, message: string): Violation => ({ pointer, code: 'schema_violation', message })

const edgeFaults = ({ relationships = [] }: ImportItem): Violation[] => {
  const first = new Map<string, number>()
  return relationships.flatMap(({ properties = {}, ...edge }, index): Violation[] => {
    const at = `/relationships/${index}`
    const named = [edge.target_external_id, edge.target_id]
    if (named.every((id) => id === undefined))
      return [wrong(at, 'names no target: it needs target_external_id or target_id')]
    if (!named.includes(undefined)) return [wrong(`${at}/target_id`, 'cannot be combined with target_external_id')]
    const key = JSON.stringify([edge.type_key, edge.direction ?? 'out', ...named])
    const before = first.get(key)
    if (before === undefined) first.set(key, index)
    if (before === undefined || equalJson(relationships[before]?.properties ?? {}, properties)) return []
    return [
      wrong(`${at}/properties`, `contradicts the properties of edge ${before}, which has the same type and target`),
    ]
  })
}

/** The result of an item left for another request because the time is over. */
export const deferred = ({ external_id }: Pick<ImportItem, 'external_id'>, index: number): ImportResult => ({
  index,
  external_id,
  outcome: 'deferred',
  diff: [],
})

/** All results in the order of the items; what follows a deferred item is deferred too, so that its sender may continue there. */
export const inOrder = (
  count: number,
  refused: ReadonlyMap<number, ImportResult>,
  results: readonly ImportResult[],
): ImportResult[] => {
  const others = results.values()
  let late = false
  return Array.from({ length: count }, (_, index) => {
    const result = refused.get(index) ?? (others.next().value as ImportResult)
    late ||= result.outcome === 'deferred'
    return late ? deferred(result, index) : { ...result, index }
  })
}

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
