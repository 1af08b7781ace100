import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import semver from 'semver'
import { LineCounter, parseAllDocuments } from 'yaml'
import type { Db } from '../../../db/client.ts'
import { recordPacks } from '../../../db/operations/packs.ts'
import { ConfigError } from '../../shared/config.ts'
import { digest } from '../../shared/data/digest.ts'
import { compileSchema, type SchemaCheck, schemaFault } from '../../shared/data/json-schema.ts'
import { pick } from '../../shared/data/pick.ts'
import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import { CelError, type CelProgram, compileCel } from '../../shared/expressions/cel.ts'
import type { Freeze, Library, Pack, Policy, Procedure, Window } from '../graph/types.ts'
import { checkProcedure } from './checks.ts'
import { policyOf, readOf, stepOf } from './defaults.ts'
import { CalendarFile, GatePolicyFile, PackFile, type ProcedureFile } from './schema.ts'

/** A file of the deployment that cannot be used: names the file, the place in it, and the reason. */
export class PackError extends ConfigError {
  readonly file: string
  readonly pointer: string
  readonly reason: string

  constructor(file: string, pointer: string, reason: string) {
    super(`${file}${pointer === '' ? '' : ` at ${pointer}`}: ${reason}`)
    this.name = 'PackError'
    this.file = file
    this.pointer = pointer
    this.reason = reason
  }
}

const folder = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))
const shape = {
  pack: compileSchema(PackFile),
  policy: compileSchema(GatePolicyFile),
  calendar: compileSchema(CalendarFile),
}

type Folders = { packs_dir?: string | undefined; policy_dir?: string | undefined }

/**
 * Reads and checks all packs, gate policies and calendars: the shipped ones and those of a site (operations.md 4.4).
 * Throws a PackError for the first fault. Needs no database.
 */
export const loadLibrary = ({ packs_dir, policy_dir }: Folders = {}): Library => {
  const policyFolders = [folder('policies'), ...(policy_dir ? [policy_dir] : [])]
  const policies = new Map<string, Policy>()
  for (const file of policyFolders.flatMap((at) => yamlFiles(join(at, 'gates')))) {
    const policy = loadPolicy(file)
    if (policies.has(policy.policy.key))
      throw new PackError(file, '/key', `the policy "${policy.policy.key}" is there twice`)
    policies.set(policy.policy.key, policy)
  }
  const calendars = policyFolders.flatMap((at) => yamlFiles(join(at, 'calendar'))).map(loadCalendar)
  if (packs_dir && !existsSync(packs_dir)) throw new PackError(packs_dir, '', 'there is no such folder of packs')
  const packs = [folder('packs'), ...(packs_dir ? [packs_dir] : [])]
    .flatMap((at) => yamlFiles(at).map((file) => loadPack(file, policies)))
    .sort((a, b) => (a.pack < b.pack ? -1 : a.pack > b.pack ? 1 : semver.rcompare(a.version, b.version)))
  for (const [i, pack] of packs.entries()) {
    const twin = packs[i + 1]
    if (twin && twin.pack === pack.pack && twin.version === pack.version)
      throw new PackError(`${pack.pack}@${pack.version}`, '/version', 'two files hold this version of the pack')
  }
  return {
    packs,
    policies,
    windows: calendars.flatMap((calendar) => calendar.windows),
    freezes: calendars.flatMap((calendar) => calendar.freezes),
  }
}

const yamlFiles = (at: string): string[] => {
  try {
    return readdirSync(at)
      .filter((name) => /\.ya?ml$/.test(name))
      .sort()
      .map((name) => join(at, name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw new PackError(at, '', `the folder cannot be read: ${(error as Error).message}`)
  }
}

/** One YAML 1.2 document (core schema), as plain JSON. */
const readYaml = (file: string): unknown => {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new PackError(file, '', `the file cannot be read: ${(error as Error).message}`)
  }
  const lineCounter = new LineCounter()
  const documents = parseAllDocuments(text, { version: '1.2', schema: 'core', uniqueKeys: true, lineCounter })
  const [document] = Array.isArray(documents) ? documents : []
  if (!document || documents.length !== 1) throw new PackError(file, '', 'the file must hold exactly one YAML document')
  const [fault] = [...document.errors, ...document.warnings]
  if (fault) {
    const line = lineCounter.linePos(fault.pos[0]).line
    throw new PackError(`${file}:${line}`, '', fault.message.split('\n')[0] ?? 'not valid YAML')
  }
  return document.toJS({ maxAliasCount: 100 })
}

const readShape = <T>(file: string, check: SchemaCheck): T => {
  const value = readYaml(file)
  // A form that is not the one we know explains all the rest, so it is said first.
  const violations = check(value)
  const first = violations.find((violation) => violation.pointer === '/format') ?? deepest(violations)
  if (first) throw new PackError(file, first.pointer, first.message)
  return value as T
}
const deepest = (violations: ReturnType<SchemaCheck>) =>
  violations.find((violation) => violation.code === 'additionalProperties') ?? violations[0]

const loadPolicy = (file: string): Policy => {
  const given = readShape<GatePolicyFile>(file, shape.policy)
  if (given.place?.at === 'before_step' && !given.place.step)
    throw new PackError(file, '/place/step', 'a gate before a step must name the step')
  if (given.check && given.approvals)
    throw new PackError(file, '/check', 'a gate is answered by a service or by people, not by both')
  const applies = given.applies === undefined ? undefined : celOf(file, '/applies', given.applies, ['plan'])
  return {
    policy: policyOf(given.key, given),
    question: given.question,
    ...(applies && { applies }),
    place: given.place ?? { at: 'entry' },
  }
}

const loadCalendar = (file: string): { windows: Window[]; freezes: Freeze[] } => {
  const given = readShape<CalendarFile>(file, shape.calendar)
  const windows = (given.windows ?? []).map((window, i) => {
    if (!isTimezone(window.timezone))
      throw new PackError(file, pointerOf('windows', i, 'timezone'), `"${window.timezone}" is not a time zone`)
    return { ...window, applies: celOf(file, pointerOf('windows', i, 'applies'), window.applies, ['target']) }
  })
  const freezes = (given.freezes ?? []).map((freeze, i) => {
    if (Date.parse(freeze.to) <= Date.parse(freeze.from))
      throw new PackError(file, pointerOf('freezes', i, 'to'), 'must be later than "from"')
    const applies = celOf(file, pointerOf('freezes', i, 'applies'), freeze.applies, ['target'])
    return { ...freeze, applies, digest: digest(freeze) }
  })
  return { windows, freezes }
}

const isTimezone = (name: string): boolean => {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

const celOf = (file: string, pointer: string, source: string, variables: readonly string[]): CelProgram => {
  try {
    return compileCel(source, variables)
  } catch (error) {
    if (error instanceof CelError) throw new PackError(file, pointer, error.message)
    throw error
  }
}

/** Reads one pack; `policies` are those its gates may name. */
export const loadPack = (file: string, policies: ReadonlyMap<string, unknown>): Pack => {
  const given = readShape<PackFile>(file, shape.pack)
  const keys = new Set<string>()
  const procedures = given.procedures.map((procedure, i) => {
    const at = pointerOf('procedures', i)
    if (keys.has(procedure.key))
      throw new PackError(file, `${at}/key`, `the procedure "${procedure.key}" is there twice`)
    keys.add(procedure.key)
    return loadProcedure(file, at, given, procedure, policies)
  })
  return {
    pack: given.pack,
    version: given.version,
    digest: digest(given),
    document: given as unknown as Record<string, unknown>,
    procedures,
  }
}

const loadProcedure = (
  file: string,
  at: string,
  pack: PackFile,
  given: ProcedureFile,
  policies: ReadonlyMap<string, unknown>,
): Procedure => {
  const { match = {}, batch } = given
  const procedure: Procedure = {
    pack: pack.pack,
    version: pack.version,
    ...pick(given, 'key', 'kind', 'title'),
    priority: given.priority ?? 0,
    scope: given.scope ?? 'target',
    match,
    ...(match.when !== undefined && { when: celOf(file, `${at}/match/when`, match.when, ['target']) }),
    parameters: given.parameters ?? { type: 'object', additionalProperties: false },
    checkParameters: schemaOf(file, `${at}/parameters`, given.parameters ?? {}, true),
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
    if (step.outputs_schema) schemaOf(file, `${at}/steps/${i}/outputs_schema`, step.outputs_schema, false)
  const fault = checkProcedure(procedure, policies)
  if (fault) throw new PackError(file, `${at}${fault.pointer}`, fault.message)
  return procedure
}

const schemaOf = (file: string, pointer: string, schema: unknown, defaults: boolean): SchemaCheck => {
  try {
    if (!isObject(schema)) throw new Error('must be a JSON Schema')
    const wrong = schemaFault(schema)
    if (wrong !== undefined) throw new Error(wrong)
    return compileSchema(schema, { defaults })
  } catch (error) {
    throw new PackError(file, pointer, `is not a JSON Schema 2020-12 that can be used: ${(error as Error).message}`)
  }
}

/** Records the loaded packs. A version that was used with another content before stops the start: plans refer to it. */
export const recordLibrary = async (db: Db, { packs }: Library): Promise<void> => {
  const reused = await db.transaction((tx) => recordPacks(tx, packs))
  if (reused)
    throw new PackError(
      `${reused.pack}@${reused.version}`,
      '/version',
      'pack_version_reused: this version was loaded before with another content; give the changed pack a new version',
    )
}
