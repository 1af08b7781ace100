import { readFileSync } from 'node:fs'
import { type Document, LineCounter, parseAllDocuments } from 'yaml'
import { ConfigError } from '../../shared/config.ts'
import type { SchemaCheck } from '../../shared/data/json-schema.ts'
import { placeIn, tokensOf } from '../../shared/data/pointer.ts'
import type { Violation } from '../../shared/errors.ts'

/** The rules for files of the deployment, and the remedy for a breach of each. */
const REMEDIES = {
  file: 'Correct the path, or the rights of the file.',
  yaml: 'Correct the YAML. A file holds one document.',
  format: 'See "signalbox pack schema" for the members and their values.',
  unique: 'Give one of them another name or version.',
  match: 'Correct "match" so that it fits the kind of the procedure.',
  order: 'Name steps of this procedure, without a cycle.',
  gate: 'Name a gate policy, and a place that the procedure has.',
  executor: 'Correct "executor" or "with" of the step.',
  time: 'Shorten the time, or lengthen that of the step.',
  secret: 'Declare the secret in "secrets", as a reference.',
  reference: 'Refer to values that are known before the step: target, after, params, outputs of earlier steps.',
  expression: 'Correct the CEL expression.',
  schema: 'Write a JSON Schema 2020-12 with patterns in RE2.',
  scope: 'Leave it out, or give the procedure the scope "target".',
  calendar: 'Correct the time.',
  version: 'Give the changed pack a new version.',
  package: 'Correct the setting OPERATIONS__PACKS__PACKAGES, or make the package again: npm pack.',
  fetch:
    'Make its server reachable, or correct OPERATIONS__PACKS__PACKAGES. A login comes from OPERATIONS__PACKS__REGISTRY_FILE.',
  type: 'Name a type of the catalog, or add its pack to the folder "types".',
  test: 'Correct the test, or the pack.',
} as const
export type PackRule = keyof typeof REMEDIES

/** A fault in a file of the deployment. `place` is `file:line:column`, as far as known. */
export type PackFault = { place: string; pointer: string; rule: PackRule; reason: string }

/** Files of the deployment that cannot be used: for each fault the file, the place, the reason, and the remedy. */
export class PackError extends ConfigError {
  readonly found: readonly PackFault[]

  constructor(found: readonly PackFault[]) {
    super(found.map(lineOf).join('\n'))
    this.name = 'PackError'
    this.found = found
  }
}

/** `file:line:column at /pointer: reason (rule). Remedy` */
export const lineOf = ({ place, pointer, rule, reason }: PackFault): string =>
  `${place}${pointer === '' ? '' : ` at ${pointer}`}: ${reason} (${rule}). ${REMEDIES[rule]}`

/** One file that was read; faults in it go to the list. */
export type Source<T = unknown> = {
  file: string
  value: T
  /** `file:line:column` of a member. */
  placeOf: (pointer: string) => string
  report: (pointer: string, rule: PackRule, reason: string) => void
}

/** Reads one YAML 1.2 document (core schema) as plain JSON. `undefined` if it has faults, which are on the list. */
const readYaml = (file: string, faults: PackFault[]): Source | undefined => {
  const broken = (reason: string, rule: PackRule = 'yaml', at = '') =>
    void faults.push({ place: `${file}${at}`, pointer: '', rule, reason })
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    return broken(`the file cannot be read: ${(error as Error).message}`, 'file')
  }
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, {
    version: '1.2',
    schema: 'core',
    merge: true,
    stringKeys: true,
    uniqueKeys: true,
    lineCounter: lines,
  }) as Document[]
  const [document] = documents
  if (!document || documents.length !== 1) return broken('the file must hold exactly one YAML document')
  const wrong = [...document.errors, ...document.warnings]
  for (const { pos, message } of wrong) {
    const { line, col } = lines.linePos(pos[0])
    broken(message.split('\n')[0]?.replace(/ at line \d+.*$/, '') ?? 'not valid YAML', 'yaml', `:${line}:${col}`)
  }
  if (wrong.length > 0) return undefined
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    return broken((error as Error).message)
  }
  const placeOf = (pointer: string) => {
    const { line, column } = placeIn(document, lines, tokensOf(pointer))
    return `${file}:${line}:${column}`
  }
  return {
    ...{ file, value, placeOf },
    report: (pointer, rule, reason) => void faults.push({ place: placeOf(pointer), pointer, rule, reason }),
  }
}

/** Like readYaml, for a known format. An unknown format explains all other faults, so it is reported alone. */
export const readShape = <T>(file: string, check: SchemaCheck, faults: PackFault[]): Source<T> | undefined => {
  const source = readYaml(file, faults)
  if (!source) return undefined
  const violations = check(source.value)
  const other = violations.find(({ pointer }) => pointer === '/format')
  const unknown = violations.filter(({ code }) => code === 'additionalProperties')
  for (const { pointer, message } of other ? [other] : unknown.length > 0 ? unknown : withoutUnions(violations))
    source.report(pointer, 'format', message)
  return violations.length === 0 ? (source as Source<T>) : undefined
}

/** A value that may have one of several shapes has one fault: what each of them asks of it. */
const withoutUnions = (violations: Violation[]): Violation[] => {
  const unions = new Set(violations.filter(({ code }) => code === 'anyOf').map(({ pointer }) => pointer))
  const branches = violations.filter(({ code }) => code !== 'anyOf')
  return branches.flatMap((violation) => {
    if (!unions.has(violation.pointer)) return [violation]
    const asked = branches.filter(({ pointer }) => pointer === violation.pointer)
    return violation === asked[0] ? [{ ...violation, message: asked.map(({ message }) => message).join(' or ') }] : []
  })
}
