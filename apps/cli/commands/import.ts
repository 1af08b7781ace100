import type { ImportResult } from '../../shared/contracts/catalog/imports.ts'
import type { ResourceView } from '../../shared/contracts/catalog/resources.ts'
import { type Command, type Context, needed, text } from '../command.ts'
import { EXIT, type ExitCode, usageError } from '../errors.ts'
import { choose } from '../import/choose.ts'
import type { Found, Options, Reader } from '../import/items.ts'
import { readKubernetes } from '../import/kubernetes.ts'
import { applyOverrides, readOverrides } from '../import/map.ts'
import { readNetbox } from '../import/netbox.ts'
import { outcomesOf, sendItems } from '../import/send.ts'
import { parseSource, readSource, SourceError } from '../import/source.ts'
import { readTerraform } from '../import/terraform.ts'
import { progress } from '../terminal/ask.ts'
import { dim } from '../terminal/output.ts'

const OPTIONS = {
  'source-name': { type: 'string', value: 'NAME', about: 'the name of the source system' },
  into: { type: 'string', value: 'RESOURCE', about: 'the container of items without one' },
  adopt: { type: 'boolean', about: 'take over resources of the same name' },
  'mark-missing': { type: 'boolean', about: 'label resources that the file no longer names' },
  strict: { type: 'boolean', about: 'fail if an item cannot be imported' },
  map: { type: 'string', value: 'FILE', about: 'maps foreign kinds to resource types' },
  only: { type: 'string', value: 'TYPES', about: 'import these types or kinds only' },
  'leave-out': { type: 'string', value: 'TYPES', about: 'skip these types or kinds' },
  batch: { type: 'string', value: 'N', about: 'items per request' },
} as const
const SOURCE_NAME = /^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$/
const MAX_SHOWN = 20
const SOURCE_LABEL = 'signalbox/import-source'
const ID_NOTE = 'signalbox/external-id'
const MISSING = 'signalbox/import-missing'
const CONTAINER = /at least 1 contained_in|contained_in topology/

const importer = (kind: string, about: string, read: Reader): Command => ({
  name: `import ${kind}`,
  takes: 'FILE',
  about: `${about} --source-name names where it comes from; --into is the container of what has none; --map FILE says of kinds what they are; --only and --leave-out take types or kinds, with commas; --dry-run shows the differences; --jsonl a line a batch.`,
  examples: [`import ${kind} FILE --source-name cluster-eu1 --into eu1-a --dry-run`],
  options: OPTIONS,
  repeats: 0,
  run: async (context, [file = ''], values) => {
    const { api, dry_run } = context
    const name = needed(values, 'source-name')
    if (!SOURCE_NAME.test(name))
      throw usageError('--source-name takes small letters, digits, dots and dashes, at most 63.')
    const size = Number(text(values, 'batch') ?? 100)
    if (!Number.isInteger(size) || size < 1 || size > 150) throw usageError('--batch takes a number from 1 to 150.')
    const into = await containerOf(context, text(values, 'into'))
    const map = text(values, 'map')
    const overrides = map === undefined ? undefined : usable(map, () => readOverrides(map))
    const choice = { only: namesIn(text(values, 'only')), leave_out: namesIn(text(values, 'leave-out')) }
    const chooses = choice.only.length + choice.leave_out.length > 0
    if (chooses && values['mark-missing'] === true)
      throw usageError('--mark-missing looks at the whole file: it does not go with --only and --leave-out.')
    const { found: made, digest } = usable(file, () => readFile(file, read, { source: name, into }))
    const mapped = overrides ? applyOverrides(made, overrides) : made
    const found = chooses ? usable(file, () => choose(mapped, choice)) : mapped
    if (values.strict === true && found.generic.size > 0)
      throw usageError(`--strict: no rule knows ${countWords(found.generic)}.`)
    const bar = progress(found.items.length, dry_run ? 'compared' : 'imported')
    let results: ImportResult[]
    try {
      results = await sendItems({
        api,
        source: { kind, name, file_digest: digest },
        items: found.items.map((item) => ({
          ...item,
          labels: { ...item.labels, [SOURCE_LABEL]: name },
          annotations: { ...item.annotations, [ID_NOTE]: item.external_id },
        })),
        size,
        adopt: values.adopt === true,
        dry_run,
        key: context.idempotency_key,
        onBatch: (batch) => {
          bar.at(batch.done)
          if (context.out.jsonl) context.out.print(JSON.stringify(batch))
        },
      })
    } finally {
      bar.end()
    }
    const missing = values['mark-missing'] === true ? await markMissing(context, name, found) : []
    return report(context, { results, found, missing })
  },
})

/** Other systems' files: what they say that exists, taken over through the public API. */
export const importCommands: Command[] = [
  importer('kubernetes', 'Objects of a cluster, as YAML documents or a JSON list.', readKubernetes),
  importer('terraform-state', 'A state file of version 4, or `terraform show -json`.', readTerraform),
  importer('netbox-export', 'Rows of NetBox: dumpdata, or endpoints with their rows.', readNetbox),
]

const containerOf = async ({ api }: Context, given: string | undefined) =>
  given === undefined ? undefined : api.get<ResourceView>(`/api/v1/resources/${encodeURIComponent(given)}`)

const namesIn = (list: string | undefined): string[] => (list ?? '').split(',').filter((name) => name !== '')

const readFile = (file: string, read: Reader, options: Options) => {
  const { documents, digest } = parseSource(readSource(file))
  const found = read(documents, options)
  if (found.items.length === 0)
    throw new SourceError(
      found.skipped.size === 0 ? 'there is nothing in it' : `all of it is left out: ${countWords(found.skipped)}`,
    )
  return { found, digest }
}

const usable = <T>(file: string, act: () => T): T => {
  try {
    return act()
  } catch (error) {
    if (error instanceof SourceError) throw usageError(`${file} cannot be imported: ${error.message}.`)
    throw error
  }
}

const countWords = (counts: ReadonlyMap<string, number>): string => {
  const kinds = [...counts].map(([kind, count]) => `${kind} (${count})`)
  return kinds.length > MAX_SHOWN
    ? `${kinds.slice(0, MAX_SHOWN).join(', ')} and ${kinds.length - MAX_SHOWN} more kinds`
    : kinds.join(', ')
}

/**
 * Labels what came from this source before and is no longer in it, and takes the label from what came back. Nothing is
 * retired.
 */
const markMissing = async ({ api, dry_run }: Context, name: string, { items }: Found): Promise<string[]> => {
  const label = `${SOURCE_LABEL}=${name}`
  const known = await api.list<ResourceView>('/api/v1/resources', { label, include: 'state', page_size: '500' }, true)
  const there = new Set(items.map(({ external_id }) => external_id))
  const isGone = ({ annotations }: ResourceView) => !there.has(annotations[ID_NOTE] ?? '')
  const moved = known.filter((one) => isGone(one) !== (one.labels[MISSING] !== undefined))
  if (!dry_run)
    for (const one of moved)
      await api.send(
        'PATCH',
        `/api/v1/resources/${encodeURIComponent(one.resource_id)}?mode=record_only&expected_version=${one.version}`,
        { labels: { [MISSING]: isGone(one) ? 'true' : null } },
        { 'content-type': 'application/merge-patch+json' },
      )
  return moved.filter(isGone).map(({ resource_id }) => resource_id)
}

type Report = { results: ImportResult[]; found: Found; missing: string[] }

const report = ({ out, dry_run }: Context, { results, found, missing }: Report): ExitCode => {
  const types = new Map(found.items.map(({ external_id, type_key }) => [external_id, type_key]))
  const counts = Map.groupBy(results, ({ external_id }) => types.get(external_id) ?? '')
  const of = (list: ImportResult[], outcome: string) => list.filter((result) => result.outcome === outcome).length || ''
  const problems = results.filter(({ problem }) => problem !== undefined)
  const body = {
    results,
    generic: Object.fromEntries(found.generic),
    skipped: Object.fromEntries(found.skipped),
    missing,
    notes: found.notes,
  }
  const rows = [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
  const OUTCOMES = ['created', 'updated', 'unchanged', 'conflict', 'refused']
  if (out.format === 'table') {
    out.list(
      [...rows, ['all', results] as [string, ImportResult[]]],
      [
        ['type', ([type]) => type],
        ...OUTCOMES.map(
          (name) =>
            [name, ([, list]: [string, ImportResult[]]) => of(list, name)] as [
              string,
              (row: [string, ImportResult[]]) => string | number,
            ],
        ),
      ],
      ([type]) => type,
    )
    if (dry_run) showDiff(out.print, results)
  } else {
    // With --jsonl each batch has had its line: what remains is what holds for all.
    const { results: _, ...rest } = body
    out.one(
      out.jsonl ? { ...rest, outcomes: outcomesOf(results) } : body,
      () => [],
      () => results.flatMap(({ resource_id }) => resource_id ?? []).join('\n'),
    )
  }
  for (const note of found.notes.slice(0, MAX_SHOWN)) out.note(`note     ${note}`)
  if (found.generic.size > 0) out.note(`generic  no rule knows ${countWords(found.generic)}`)
  if (found.skipped.size > 0) out.note(`left out ${countWords(found.skipped)}`)
  if (missing.length > 0)
    out.note(`missing  ${missing.length} that the source no longer names${dry_run ? '' : `, labelled ${MISSING}`}`)
  showProblems(out.note, problems, types)
  if (problems.length > 0) return EXIT.refused
  const changes = results.some(({ outcome }) => outcome === 'created' || outcome === 'updated') || missing.length > 0
  return dry_run && changes ? EXIT.changes : EXIT.done
}

/** Equal problems of one type together, with one of them as it was said; all stand in `-o json`. */
const showProblems = (note: (line: string) => void, problems: ImportResult[], types: ReadonlyMap<string, string>) => {
  const alike = Map.groupBy(
    problems,
    ({ external_id, problem }) => `${problem?.category}/${problem?.code}  ${types.get(external_id)}`,
  )
  for (const [what, list] of [...alike].slice(0, MAX_SHOWN))
    note(`${what}: ${list.length} of them, as ${list[0]?.external_id}: ${list[0]?.problem?.detail}`)
  if (problems.some(({ problem }) => CONTAINER.test(problem?.detail ?? '')))
    note(
      'hint     --into ID names the container of what has none in the file: a segment fits the most, for subnets a layer',
    )
}

const showDiff = (print: (line: string) => void, results: ImportResult[]): void => {
  const lines = results.flatMap(({ external_id, outcome, diff }) =>
    outcome === 'created'
      ? [`  + add      ${external_id}`]
      : diff.map(
          ({ path, before, after }) =>
            `  ~ change   ${external_id}   ${path}   ${JSON.stringify(before)} -> ${JSON.stringify(after)}`,
        ),
  )
  for (const line of lines.slice(0, MAX_SHOWN)) print(line)
  if (lines.length > MAX_SHOWN) print(dim(`  … ${lines.length - MAX_SHOWN} more: -o json shows all`))
}
