import { writeFileSync } from 'node:fs'
import type { ImportResult } from '../../../shared/contracts/imports/imports.ts'
import type { Context } from '../../command.ts'
import { EXIT, type ExitCode, usageError } from '../../errors.ts'
import { type Column, dim, harmless } from '../../terminal/output.ts'
import type { Found } from '../items.ts'
import type { Fate, FieldFate } from '../loss.ts'
import { outcomesOf } from '../send.ts'
import { MISSING } from './known.ts'
import type { Pruned } from './prune.ts'

export type Run = {
  source: { kind: string; name: string; file: string }
  results: ImportResult[]
  found: Found
  missing: string[]
  pruned: Pruned
  /** Items that keep the type `infra.generic` of an earlier import. */
  kept: number
}

const MAX_SHOWN = 20
const CONTAINER = /at least 1 contained_in|contained_in topology/
const OUTCOMES = ['created', 'updated', 'unchanged', 'conflict', 'refused']

/** The ledger of an import by fate: lost, changed, withheld, computed and untyped fields, lost and left-out rows. */
export const lossOf = ({ ledger }: Found) => {
  const fields = ledger.fields()
  const of = (fate: Fate) => fields.filter((one) => one.fate === fate).map(({ fate: _, ...one }) => one)
  return {
    lost: of('lost'),
    lost_rows: ledger.leftOut().filter(({ lost }) => lost),
    changed: of('changed'),
    withheld: of('withheld'),
    computed: of('computed'),
    untyped: of('untyped'),
    left_out: ledger
      .leftOut()
      .filter(({ lost }) => !lost)
      .map(({ lost: _, ...one }) => one),
  }
}
export const losesAnything = (found: Found): boolean => {
  const { lost, lost_rows } = lossOf(found)
  return lost.length + lost_rows.length > 0
}

export const writeReport = (file: string, context: Context, run: Run): void => {
  const { source, results, found, missing, pruned, kept } = run
  const body = {
    source,
    dry_run: context.dry_run,
    items: found.items.length,
    outcomes: outcomesOf(results),
    ...lossOf(found),
    generic: Object.fromEntries(found.generic),
    problems: results.filter(({ problem }) => problem !== undefined),
    missing,
    pruned,
    kept_generic: kept,
  }
  try {
    writeFileSync(file, `${JSON.stringify(body, null, 2)}\n`)
  } catch (error) {
    throw usageError(`--report cannot write ${file}: ${(error as Error).message}`)
  }
}

/** Prints the outcomes by type, the losses and the problems; returns the exit code. */
export const report = (context: Context, run: Run): ExitCode => {
  const { out, dry_run } = context
  const { results, found, missing, pruned } = run
  const types = new Map(found.items.map(({ external_id, type_key }) => [external_id, type_key]))
  const problems = results.filter(({ problem }) => problem !== undefined)
  if (out.format === 'table') {
    outcomeTable(context, results, types)
    if (dry_run) showDiff(out.print, results)
  } else printBody(context, run)
  const note = (line: string) => out.note(harmless(line))
  showNotes(note, run, dry_run)
  showLoss(out.note, found)
  showProblems(note, problems, types)
  if (problems.length + pruned.failed.length > 0) return EXIT.refused
  const changed = results.some(({ outcome }) => outcome === 'created' || outcome === 'updated')
  return dry_run && (changed || missing.length + pruned.retired.length > 0) ? EXIT.changes : EXIT.done
}

const outcomeTable = ({ out }: Context, results: ImportResult[], types: ReadonlyMap<string, string>): void => {
  const rows = [...Map.groupBy(results, ({ external_id }) => types.get(external_id) ?? '')]
  rows.sort(([a], [b]) => (a < b ? -1 : 1))
  const count = (list: ImportResult[], outcome: string) =>
    list.filter((result) => result.outcome === outcome).length || ''
  out.list<[string, ImportResult[]]>([...rows, ['all', results]], ([type]) => type, [
    ['type', ([type]) => type],
    ...OUTCOMES.map((name): Column<[string, ImportResult[]]> => [name, ([, list]) => count(list, name)]),
  ])
}

/** With --jsonl each batch was already printed as a line, so the body holds the rest. */
const printBody = ({ out }: Context, { results, found, missing, pruned }: Run): void => {
  const { ledger } = found
  const rest = {
    generic: Object.fromEntries(found.generic),
    left_out: ledger.leftOut(),
    lost: lossOf(found).lost,
    changed: lossOf(found).changed,
    withheld: lossOf(found).withheld,
    missing,
    pruned,
    notes: found.notes,
  }
  out.one(
    out.jsonl ? { ...rest, outcomes: outcomesOf(results) } : { results, ...rest },
    () => results.flatMap(({ resource_id }) => resource_id ?? []).join('\n'),
    () => [],
  )
}

type Note = (line: string) => void

const showNotes = (note: Note, { results, found, missing, pruned, kept }: Run, dry_run: boolean): void => {
  const outcomes = outcomesOf(results)
  const changes = (outcomes.created ?? 0) + (outcomes.updated ?? 0) + pruned.retired.length
  note(`changes  ${changes}${dry_run ? ' (dry run)' : ''}`)
  for (const line of found.notes.slice(0, MAX_SHOWN)) note(`note     ${line}`)
  if (found.generic.size > 0)
    note(`generic  kinds without a type of their own, imported as infra.generic: ${words([...found.generic])}`)
  if (kept > 0)
    note(
      `generic  resources that keep the type infra.generic of an earlier import: ${kept}; retire them to get the new type`,
    )
  const left_out = lossOf(found).left_out
  if (left_out.length > 0) note(`left out ${words(left_out.map(({ kind, count }) => [kind, count]))}`)
  if (missing.length > 0)
    note(`missing  ${missing.length} that the source no longer names${dry_run ? '' : `, labeled ${MISSING}`}`)
  if (pruned.retired.length > 0) note(`pruned   ${pruned.retired.length}${dry_run ? ' (dry run)' : ''}`)
  if (pruned.kept.length > 0) note(`kept     ${pruned.kept.length} that this source adopted or did not make`)
  for (const { resource_id, reason } of pruned.failed.slice(0, MAX_SHOWN)) note(`kept     ${resource_id}: ${reason}`)
}

const words = (pairs: (readonly [string, number])[]): string => {
  const all = pairs.map(([kind, count]) => `${kind} (${count})`)
  return all.length > MAX_SHOWN
    ? `${all.slice(0, MAX_SHOWN).join(', ')} and ${all.length - MAX_SHOWN} more kinds`
    : all.join(', ')
}

/** The losses as a table: each field with its count and the reason. */
export const showLoss = (note: Note, found: Found): void => {
  const { lost, lost_rows, changed, withheld, untyped, computed } = harmless(lossOf(found))
  const sum = (list: readonly { count: number }[]) => list.reduce((all, { count }) => all + count, 0)
  const kept = `${sum(untyped)} values kept without a type, ${sum(computed)} computed by the source`
  if (lost.length + lost_rows.length === 0) note(dim(`loss     none; ${kept}, ${sum(withheld)} secrets withheld`))
  for (const { kind, reason, count } of lost_rows) note(`lost     ${count} × ${kind}: ${reason}`)
  for (const one of lost.slice(0, MAX_SHOWN)) note(`lost     ${line(one)}`)
  if (lost.length > MAX_SHOWN) note(`lost     … ${lost.length - MAX_SHOWN} more fields: --report FILE names all`)
  for (const one of changed.slice(0, MAX_SHOWN)) note(`changed  ${line(one)}`)
  for (const one of withheld.slice(0, MAX_SHOWN)) note(`withheld ${line(one)}`)
}
const line = ({ kind, field, reason, count, example }: Omit<FieldFate, 'fate'>) =>
  `${count} × ${kind} ${field}: ${reason} (${example})`

/** Groups equal problems of one type and shows one of them verbatim; `-o json` has all. */
const showProblems = (note: Note, problems: ImportResult[], types: ReadonlyMap<string, string>) => {
  const alike = Map.groupBy(
    problems,
    ({ external_id, problem }) => `${problem?.category}/${problem?.code}  ${types.get(external_id)}`,
  )
  for (const [what, list] of [...alike].slice(0, MAX_SHOWN))
    note(`${what}: ${list.length} in all, such as ${list[0]?.external_id}: ${list[0]?.problem?.detail}`)
  if (problems.some(({ problem }) => CONTAINER.test(problem?.detail ?? '')))
    note('hint     --into ID names the container of items without one: a segment fits most types, a layer fits subnets')
  if (problems.some(({ problem }) => problem?.code === 'already_exists'))
    note('hint     --adopt takes over existing resources, such as the regions of another source, with their fields')
}

const shown = (value: unknown): string => (value === undefined ? 'none' : JSON.stringify(value))
const showDiff = (print: (line: string) => void, results: ImportResult[]): void => {
  const lines = results.flatMap(({ external_id, outcome, diff }) =>
    outcome === 'created'
      ? [`  + add      ${external_id}`]
      : diff.map(
          ({ path, before, after }) => `  ~ change   ${external_id}   ${path}   ${shown(before)} -> ${shown(after)}`,
        ),
  )
  for (const line of lines.slice(0, MAX_SHOWN)) print(harmless(line))
  if (lines.length > MAX_SHOWN) print(dim(`  … ${lines.length - MAX_SHOWN} more: -o json shows all`))
}
