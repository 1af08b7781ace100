import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import semver from 'semver'
import { LINE } from '../../shared/contracts/shapes.ts'
import { isTimezone } from '../../shared/data/calendar.ts'
import { digest } from '../../shared/data/digest.ts'
import { compileSchema, type SchemaCheck, schemaFault } from '../../shared/data/json-schema.ts'
import { pick } from '../../shared/data/pick.ts'
import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import { CelError, type CelProgram, compileCel, compileCondition } from '../../shared/expressions/cel.ts'
import type { Freeze, Library, Pack, Policy, Procedure, Window } from '../graph/types.ts'
import { checkProcedure } from './checks.ts'
import { policyOf, readOf, stepOf } from './defaults.ts'
import { CalendarFile, GatePolicyFile, PackFile, type ProcedureFile } from './schema.ts'
import { PackError, type PackFault, readShape, type Source } from './source.ts'

/** The folder of this app, which holds the shipped packs and policies. */
const SHIPPED = fileURLToPath(new URL('..', import.meta.url))
const shape = {
  pack: compileSchema(PackFile),
  policy: compileSchema(GatePolicyFile),
  calendar: compileSchema(CalendarFile),
}

type Folders = { packs_dirs?: readonly string[]; policy_dir?: string | undefined; shipped?: string }

/**
 * Reads and checks all packs, gate policies and calendars: the shipped ones and those of a site (operations.md 4.4). A
 * folder of packs may have its own gate policies, in `gates`. Throws a PackError with every fault. Needs no database.
 */
export const loadLibrary = ({ packs_dirs = [], policy_dir, shipped = SHIPPED }: Folders = {}): Library => {
  const faults: PackFault[] = []
  const policyDirs = [join(shipped, 'policies'), ...(policy_dir ? [policy_dir] : [])]
  const policies = new Map<string, Policy>()
  for (const file of [...policyDirs, ...packs_dirs].flatMap((at) => yamlFiles(join(at, 'gates'), faults))) {
    const source = readShape<GatePolicyFile>(file, shape.policy, faults)
    if (!source) continue
    const policy = policyIn(source)
    const { key } = policy.policy
    if (policies.has(key)) source.report('/key', 'unique', `the policy "${key}" is defined twice`)
    policies.set(key, policy)
  }
  const calendars = policyDirs
    .flatMap((at) => yamlFiles(join(at, 'calendar'), faults))
    .flatMap((file) => readShape<CalendarFile>(file, shape.calendar, faults) ?? [])
    .map(calendarIn)
  for (const at of packs_dirs)
    if (!existsSync(at))
      faults.push({ place: at, pointer: '', rule: 'file', reason: 'this folder of packs does not exist' })
  const packs = [join(shipped, 'packs'), ...packs_dirs]
    .flatMap((at) => yamlFiles(at, faults))
    .flatMap((file) => readShape<PackFile>(file, shape.pack, faults) ?? [])
    .map((source) => packIn(source, policies))
    .sort((a, b) => (a.pack < b.pack ? -1 : a.pack > b.pack ? 1 : semver.rcompare(a.version, b.version)))
  for (const [i, { pack, version }] of packs.entries()) {
    const twin = packs[i + 1]
    if (twin?.pack !== pack || twin.version !== version) continue
    const reason = 'two files contain this version of the pack'
    faults.push({ place: `${pack}@${version}`, pointer: '/version', rule: 'unique', reason })
  }
  if (faults.length > 0) throw new PackError(faults)
  return {
    packs,
    policies,
    windows: calendars.flatMap((calendar) => calendar.windows),
    freezes: calendars.flatMap((calendar) => calendar.freezes),
  }
}

const yamlFiles = (at: string, faults: PackFault[]): string[] => {
  try {
    return readdirSync(at)
      .filter((name) => /\.ya?ml$/.test(name))
      .sort()
      .map((name) => join(at, name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    const reason = `the folder cannot be read: ${(error as Error).message}`
    faults.push({ place: at, pointer: '', rule: 'file', reason })
    return []
  }
}

const policyIn = (source: Source<GatePolicyFile>): Policy => {
  const { value: given, report } = source
  if (given.place?.at === 'before_step' && !given.place.step)
    report('/place/step', 'gate', 'a gate before a step must name the step')
  // A text that YAML folds ends with a line break.
  if (!new RegExp(LINE, 'u').test(given.question.trimEnd()))
    report('/question', 'gate', 'must be one visible line, without control or invisible characters')
  if (given.check && given.approvals) report('/check', 'gate', 'a gate is answered by a service or by people, not both')
  const applies = given.applies === undefined ? undefined : celOf(source, '/applies', given.applies, ['plan'])
  return {
    policy: policyOf(given.key, given),
    question: given.question,
    ...(applies && { applies }),
    place: given.place ?? { at: 'entry' },
  }
}

const calendarIn = (source: Source<CalendarFile>): { windows: Window[]; freezes: Freeze[] } => {
  const { value: given, report } = source
  const windows = (given.windows ?? []).map((window, i) => {
    if (!isTimezone(window.timezone))
      report(pointerOf('windows', i, 'timezone'), 'calendar', `"${window.timezone}" is not a time zone`)
    return { ...window, applies: celOf(source, pointerOf('windows', i, 'applies'), window.applies, ['target']) }
  })
  const freezes = (given.freezes ?? []).map((freeze, i) => {
    if (Date.parse(freeze.to) <= Date.parse(freeze.from))
      report(pointerOf('freezes', i, 'to'), 'calendar', 'must be later than "from"')
    const applies = celOf(source, pointerOf('freezes', i, 'applies'), freeze.applies, ['target'])
    return { ...freeze, applies, digest: digest(freeze) }
  })
  return { windows, freezes }
}

/** Returns the compiled expression. One that does not compile is reported, and replaced by one that is never true. */
const celOf = (source: Source, pointer: string, text: string, variables: readonly string[]): CelProgram => {
  try {
    return compileCondition(text, variables)
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    source.report(pointer, 'expression', error.message)
    return compileCel('false', [])
  }
}

/** Returns a pack as it was recorded; it was checked when it was loaded. */
export const packOf = (document: Record<string, unknown>): Pack =>
  packIn({ file: '', value: document as PackFile, placeOf: () => '', report: () => {} }, new Map())

/** Returns one pack; `policies` are those its gates may name. */
const packIn = (source: Source<PackFile>, policies: ReadonlyMap<string, unknown>): Pack => {
  const given = source.value
  const keys = new Set<string>()
  const procedures = given.procedures.map((procedure, i) => {
    const at = pointerOf('procedures', i)
    if (keys.has(procedure.key))
      source.report(`${at}/key`, 'unique', `the procedure "${procedure.key}" is defined twice`)
    keys.add(procedure.key)
    return procedureIn(source, at, procedure, policies)
  })
  return {
    ...pick(given, 'pack', 'version'),
    digest: digest(given),
    document: given as unknown as Record<string, unknown>,
    procedures,
  }
}

const procedureIn = (
  source: Source<PackFile>,
  at: string,
  given: ProcedureFile,
  policies: ReadonlyMap<string, unknown>,
): Procedure => {
  const { match = {}, batch } = given
  const procedure: Procedure = {
    pack: source.value.pack,
    version: source.value.version,
    ...pick(given, 'key', 'kind', 'title'),
    priority: given.priority ?? 0,
    scope: given.scope ?? 'target',
    match,
    ...(match.when !== undefined && { when: celOf(source, `${at}/match/when`, match.when, ['target']) }),
    parameters: given.parameters ?? { type: 'object', additionalProperties: false },
    checkParameters: schemaOf(source, `${at}/parameters`, given.parameters ?? {}, true),
    lease: { mode: given.lease?.mode ?? 'exclusive', ancestors: given.lease?.ancestors ?? 'shared' },
    ...(given.order && { order: given.order }),
    ...(batch && {
      batch: {
        ...(batch.by !== undefined && { by: batch.by }),
        canary: batch.canary ?? 0,
        size: batch.size ?? 1000,
        max_failures: batch.max_failures ?? 0,
      },
    }),
    risk_base: given.risk?.base ?? 0,
    gates: given.gates ?? [],
    ...(given.read && { read: readOf(given.read, given.defaults) }),
    steps: given.steps.map((step) => stepOf(step, given.defaults)),
  }
  for (const [i, step] of procedure.steps.entries())
    if (step.outputs_schema) schemaOf(source, `${at}/steps/${i}/outputs_schema`, step.outputs_schema, false)
  for (const { pointer, rule, message } of checkProcedure(procedure, policies))
    source.report(`${at}${pointer}`, rule, message)
  return procedure
}

const schemaOf = (source: Source, pointer: string, schema: unknown, defaults: boolean): SchemaCheck => {
  try {
    if (!isObject(schema)) throw new Error('must be a JSON Schema')
    const wrong = schemaFault(schema)
    if (wrong !== undefined) throw new Error(wrong)
    return compileSchema(schema, { defaults })
  } catch (error) {
    const reason = `is not a usable JSON Schema 2020-12: ${(error as Error).message}`
    source.report(pointer, 'schema', reason)
    return () => []
  }
}
