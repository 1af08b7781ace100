import type { ResourceView } from '../../../shared/contracts/catalog/resources.ts'
import { uuidv7 } from '../../../shared/ids.ts'
import { type Context, needed, text, type Values } from '../../command.ts'
import { EXIT, type ExitCode, usageError } from '../../errors.ts'
import { needsTerminal, progress } from '../../terminal/ask.ts'
import { choose } from '../choose.ts'
import type { Found, Options, Reader } from '../items.ts'
import { readKubernetes } from '../kubernetes/read.ts'
import { applyOverrides, readOverrides } from '../map.ts'
import { readNetbox } from '../netbox/read.ts'
import { sendItems } from '../send.ts'
import { digestOf, parseSource, readSource, SourceError } from '../source.ts'
import { readMapping } from '../table/mapping.ts'
import { csvRows, jsonRows, readRows } from '../table/read.ts'
import { readTerraform } from '../terraform/read.ts'
import { goneOf, knownOf, markMissing, settledItems } from './known.ts'
import { type Pruned, prune } from './prune.ts'
import { losesAnything, type Run, report, showLoss, writeReport } from './report.ts'

const SOURCE_NAME = /^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$/

type Read = (file: string, options: Options, values: Values) => { found: Found; digest: string }

const fromDocuments =
  (reader: Reader): Read =>
  (file, options) => {
    const { documents, digest } = parseSource(readSource(file))
    return { found: reader(documents, options), digest }
  }

const READERS = {
  netbox: fromDocuments(readNetbox),
  kubernetes: fromDocuments(readKubernetes),
  terraform: fromDocuments(readTerraform),
  csv: (file, options, values) => {
    const mapping = readMapping(needed(values, 'mapping'))
    const source = readSource(file)
    return { found: readRows(csvRows(source, mapping), mapping, options), digest: digestOf(source) }
  },
  json: (file, options, values) => {
    const mapping = readMapping(needed(values, 'mapping'))
    const { documents, digest } = parseSource(readSource(file))
    return { found: readRows(jsonRows(documents, mapping), mapping, options), digest }
  },
} satisfies Record<string, Read>
export type Kind = keyof typeof READERS

/** Reads a file, sends its items to the catalog, and marks or retires resources that it no longer names. */
export const runImport = async (kind: Kind, context: Context, file: string, values: Values): Promise<ExitCode> => {
  const { name, size } = checked(values)
  if (values.prune === true && !context.yes && !context.dry_run) needsTerminal('--prune asks before it retires.')
  const into = await containerOf(context, text(values, 'into'))
  const { found, digest } = usable(file, () =>
    chosen(READERS[kind](file, { source: name, into }, values), values, file),
  )
  const source = { kind, name }
  const pruned: Pruned = { retired: [], kept: [], failed: [] }
  const run: Run = { source: { ...source, file }, found, results: [], missing: [], pruned, kept: 0 }
  const file_of_report = text(values, 'report')
  if (values.strict === true && losesAnything(found)) {
    if (file_of_report !== undefined) writeReport(file_of_report, context, run)
    showLoss(context.out.note, found)
    context.out.note('strict   Nothing was imported, because fields would be lost.')
    return EXIT.refused
  }
  const known = await knownOf(context, name)
  const { items, kept } = settledItems(found, name, known)
  run.kept = kept
  const bar = progress(items.length, context.dry_run ? 'compared' : 'imported')
  const key = context.idempotency_key ?? uuidv7()
  const resume = resuming(context, key)
  try {
    run.results = await sendItems({
      api: context.api,
      source: { ...source, file_digest: digest },
      items,
      size,
      options: {
        adopt: values.adopt === true,
        force: values.force === true,
        complete_fields: true,
        complete_relationships: isWhole(values),
      },
      dry_run: context.dry_run,
      key,
      onBatch: (batch) => {
        if (context.out.jsonl) context.out.print(JSON.stringify(batch))
      },
      onProgress: bar.at,
      onJob: resume.started,
    })
  } catch (error) {
    resume.tell()
    throw error
  } finally {
    bar.end()
    resume.end()
  }
  const gone = goneOf(known, items, run.results)
  const tell = () => {
    if (file_of_report !== undefined) writeReport(file_of_report, context, run)
    return report(context, run)
  }
  try {
    if (values.prune === true) await prune(context, name, gone, pruned)
    if (values['mark-missing'] === true) {
      const marked = await markMissing(context, gone, pruned.retired)
      run.missing = marked.missing
      pruned.failed.push(...marked.failed)
    }
  } catch (error) {
    // The import has been done: its report comes first.
    tell()
    throw error
  }
  return tell()
}

/** Tells a person who interrupts an import that its job continues, and how to resume it. */
const resuming = ({ out, dry_run }: Context, key: string) => {
  let job: string | undefined
  const tell = () => {
    if (job === undefined || dry_run) return
    out.note(
      `resume   The job ${job} continues in the catalog. The same command with --idempotency-key ${key} resumes.`,
    )
  }
  const onInterrupt = () => {
    out.note('')
    tell()
    process.exit(EXIT.interrupted)
  }
  process.once('SIGINT', onInterrupt)
  return {
    started: (job_id: string): void => {
      job = job_id
    },
    tell,
    end: (): void => void process.off('SIGINT', onInterrupt),
  }
}

const checked = (values: Values) => {
  const name = needed(values, 'source-name')
  if (!SOURCE_NAME.test(name))
    throw usageError('--source-name takes small letters, digits, dots and dashes, at most 63.')
  const size = Number(text(values, 'batch') ?? 1000)
  if (!Number.isInteger(size) || size < 1 || size > 1000) throw usageError('--batch takes a number from 1 to 1000.')
  for (const option of ['mark-missing', 'prune'])
    if (values[option] === true && !isWhole(values))
      throw usageError(`--${option} needs the whole file: it cannot be combined with --only or --leave-out.`)
  return { name, size }
}

const namesIn = (list: string | undefined): string[] => (list ?? '').split(',').filter((name) => name !== '')
const isWhole = (values: Values): boolean =>
  namesIn(text(values, 'only')).length + namesIn(text(values, 'leave-out')).length === 0

const containerOf = async ({ api }: Context, given: string | undefined) =>
  given === undefined ? undefined : api.get<ResourceView>(`/api/v1/resources/${encodeURIComponent(given)}`)

/** The part of a file that the options select, as --map changes it. */
const chosen = ({ found, digest }: ReturnType<Read>, values: Values, file: string) => {
  if (found.items.length === 0)
    throw new SourceError(
      found.ledger.leftOut().length === 0
        ? 'it holds no items'
        : `all of it is left out: ${found.ledger
            .leftOut()
            .map(({ kind, reason }) => `${kind} (${reason})`)
            .join(', ')}`,
    )
  const map = text(values, 'map')
  const mapped =
    map === undefined
      ? found
      : applyOverrides(
          found,
          usable(map, () => readOverrides(map)),
        )
  const choice = { only: namesIn(text(values, 'only')), leave_out: namesIn(text(values, 'leave-out')) }
  return { found: isWhole(values) ? mapped : usable(file, () => choose(mapped, choice)), digest }
}

const usable = <T>(file: string, act: () => T): T => {
  try {
    return act()
  } catch (error) {
    if (error instanceof SourceError)
      throw usageError(`${file} cannot be imported: ${error.message.replace(/\.$/, '')}.`)
    throw error
  }
}
