import { readFileSync, statSync } from 'node:fs'
import { type Document, isAlias, isCollection, isPair, parseAllDocuments, visit } from 'yaml'
import { sha256Hex } from '../../shared/data/digest.ts'
import { scanJson } from '../../shared/data/json.ts'
import type { AppError } from '../../shared/errors.ts'
import { isLost, parseDigits } from '../../shared/run/exact.ts'

/** Limits for reading an untrusted file: far more than any real file has, far less than a malicious one needs. */
export const BOUNDS = { bytes: 64 * 1_048_576, yaml_bytes: 16 * 1_048_576, documents: 10_000, depth: 100, aliases: 100 }
const JSON_BOUNDS = { depth: BOUNDS.depth, keys: 10_000_000, items: 10_000_000, string_bytes: 4 * 1_048_576 }

/** Thrown if a reader cannot accept a file; the message says why and where. */
export class SourceError extends Error {}

export const digestOf = (text: string): string => `sha256:${sha256Hex(text)}`
export type Source = { documents: unknown[]; digest: string }

/** A file's text, within bounds; `-` is stdin. */
export const readSource = (file: string): string => {
  try {
    if (file !== '-' && statSync(file).size > BOUNDS.bytes) throw new SourceError(tooLarge(BOUNDS.bytes))
    const bytes = readFileSync(file === '-' ? 0 : file)
    if (bytes.length > BOUNDS.bytes) throw new SourceError(tooLarge(BOUNDS.bytes))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (error instanceof SourceError) throw error
    if ((error as { code?: string }).code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw new SourceError('it is not UTF-8 text')
    throw new SourceError(`it cannot be read: ${(error as Error).message}`)
  }
}

const tooLarge = (bytes: number) => `it is larger than ${bytes / 1_048_576} MiB; import it in parts`

/** All documents of YAML or JSON. Rejects attacks: duplicate members, deep nesting, endless anchors, many documents. */
export const parseSource = (text: string): Source => {
  const digest = digestOf(text)
  const start = text.trimStart()[0]
  if (start === undefined) throw new SourceError('it is empty')
  if (start === '{' || start === '[') {
    const json = parseJson(text)
    if (json.ok) return { documents: [json.value], digest }
    // Flow collections are YAML too; a text that is neither gets the JSON error.
    if (Buffer.byteLength(text) > BOUNDS.yaml_bytes) throw json.error
    try {
      return { documents: parseYaml(text), digest }
    } catch {
      throw json.error
    }
  }
  return { documents: parseYaml(text), digest }
}

/** A number that a double cannot hold stays as its text, as in JSON. */
const keepLost = (document: Document.Parsed): void =>
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'number' && isLost(scalar.value)) scalar.value = scalar.source
    },
  })

type Parsed = { ok: true; value: unknown } | { ok: false; error: SourceError }
const parseJson = (text: string): Parsed => {
  try {
    scanJson(text, JSON_BOUNDS)
  } catch (error) {
    throw new SourceError((error as AppError).message)
  }
  try {
    return { ok: true, value: parseDigits(text) }
  } catch (error) {
    return { ok: false, error: new SourceError(`it is not valid JSON: ${(error as Error).message}`) }
  }
}

const parseYaml = (text: string): unknown[] => {
  if (Buffer.byteLength(text) > BOUNDS.yaml_bytes)
    throw new SourceError(`as YAML ${tooLarge(BOUNDS.yaml_bytes)}, or as JSON`)
  const documents = read(() => parseAllDocuments(text, { uniqueKeys: true, logLevel: 'silent' }))
  if (documents.length > BOUNDS.documents) throw new SourceError(`it holds more than ${BOUNDS.documents} documents`)
  return [...documents].flatMap((document, index) => {
    const [error] = document.errors
    if (error) throw new SourceError(`document ${index + 1} is not valid YAML: ${error.message.split('\n')[0]}`)
    refuseDepth(document.contents, index)
    keepLost(document)
    const value = read(() => document.toJS({ maxAliasCount: BOUNDS.aliases }))
    return value === null || value === undefined ? [] : [value]
  })
}

const refuseDepth = (node: unknown, index: number): void => {
  let level: unknown[] = [node]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > 2 * BOUNDS.depth) throw new SourceError(`document ${index + 1} is nested deeper than ${BOUNDS.depth}`)
    level = level.flatMap((one) =>
      isPair(one) ? [one.key, one.value] : isCollection(one) && !isAlias(one) ? (one.items as unknown[]) : [],
    )
  }
}

const read = <T>(act: () => T): T => {
  try {
    return act()
  } catch (error) {
    if (error instanceof RangeError) throw new SourceError(`it is nested deeper than ${BOUNDS.depth}`)
    if (error instanceof ReferenceError && /alias/i.test(error.message))
      throw new SourceError(`its anchors are used more often than allowed (${BOUNDS.aliases} times)`)
    throw new SourceError(`it cannot be read as YAML: ${(error as Error).message.split('\n')[0]}`)
  }
}
