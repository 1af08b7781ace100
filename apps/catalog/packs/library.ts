import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type Document, LineCounter, parseDocument, visit } from 'yaml'
import { ConfigError } from '../../shared/config.ts'
import { placeIn } from '../../shared/data/pointer.ts'
import { buildModel } from './check.ts'
import type { TypeModel } from './format.ts'
import { PackFile } from './format.ts'

/** The packs shipped with the catalog. */
export const SHIPPED_PACKS = fileURLToPath(new URL('.', import.meta.url))

const MAX_BYTES = 4 * 1024 * 1024
const validPack = new Ajv2020({ allErrors: true, strict: false }).compile(PackFile as object)

type Source = { file: string; lines: LineCounter; document: Document | undefined; pack: PackFile | undefined }

/**
 * Reads and checks the type packs of these folders without a database (`npm run packs:check`). Returns the model and
 * one line per fault: `file:line:column: what is wrong (rule). What to do.`
 */
export const checkPacks = (dirs: readonly string[]): { model: TypeModel; faults: string[] } => {
  const faults: string[] = []
  const sources = dirs.flatMap(packFiles).map((file) => readPack(file, faults))
  const readable = sources.filter((source): source is Source & { pack: PackFile } => source.pack !== undefined)
  const built = buildModel(readable.map(({ pack }) => pack))
  // Cross-pack rules would only repeat the effects of a broken file.
  if (faults.length === 0) {
    for (const { pack, path, rule, message, fix } of built.faults) {
      const source = readable[pack] as Source
      faults.push(faultLine(source, path, rule, `${path.join('/')} ${message}`, fix))
    }
  }
  return { model: built.model, faults }
}

/** Like checkPacks, for the start of an app: any fault throws a ConfigError that names all of them. */
export const loadPacks = (dirs: readonly string[]): TypeModel => {
  const { model, faults } = checkPacks(dirs)
  if (faults.length > 0) throw new ConfigError(`the type packs cannot be used: ${faults.join('\n  ')}`)
  return model
}

const packFiles = (dir: string): string[] => {
  let names: string[]
  try {
    names = readdirSync(dir)
  } catch (error) {
    throw new ConfigError(`CATALOG__PACKS__DIRS names ${dir}, which cannot be read: ${(error as Error).message}`)
  }
  return names
    .filter((name) => /\.(ya?ml|json)$/.test(name))
    .sort()
    .map((name) => join(dir, name))
}

const faultLine = (source: Source, path: readonly (string | number)[], rule: string, message: string, fix: string) =>
  `${placeOf(source, path)}: ${message} (${rule}). ${fix}`

const placeOf = ({ file, document, lines }: Source, path: readonly (string | number)[]): string => {
  const { line, column } = document ? placeIn(document, lines, path) : { line: 1, column: 1 }
  return `${file}:${line}:${column}`
}

const readPack = (file: string, faults: string[]): Source => {
  const source: Source = { file, lines: new LineCounter(), document: undefined, pack: undefined }
  const text = readFileSync(file, 'utf8')
  if (Buffer.byteLength(text) > MAX_BYTES) {
    faults.push(`${file}:1:1: is larger than 4 MiB (size). Split the pack.`)
    return source
  }
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    lineCounter: source.lines,
  })
  for (const error of document.errors) {
    const { line, col } = source.lines.linePos(error.pos[0])
    faults.push(
      `${file}:${line}:${col}: ${error.message.split('\n')[0]} (yaml). Correct the YAML of ${basename(file)}.`,
    )
  }
  if (document.errors.length > 0) return source
  source.document = document
  const before = faults.length
  refuseTricks(source, document, faults)
  if (faults.length > before) return source
  const value: unknown = document.toJS()
  if (validPack(value)) source.pack = value as PackFile
  else for (const error of validPack.errors ?? []) reportShape(source, error, faults)
  return source
}

/** Anchors, aliases and tags give a text another meaning than it shows. */
const refuseTricks = (source: Source, document: Document, faults: string[]) => {
  const report = (range: readonly number[] | null | undefined, what: string) => {
    const { line, col } = source.lines.linePos(range?.[0] ?? 0)
    faults.push(`${source.file}:${line}:${col}: ${what} is not allowed (yaml). Write the value out.`)
  }
  visit(document, {
    Alias: (_key, node) => void report(node.range, 'an alias'),
    Node: (_key, node) => {
      const { anchor, tag, range } = node as { anchor?: string; tag?: string; range?: readonly number[] }
      if (anchor) report(range, 'an anchor')
      if (tag) report(range, 'a tag')
    },
  })
}

type ShapeError = NonNullable<typeof validPack.errors>[number]

const reportShape = (source: Source, { instancePath, keyword, params, message }: ShapeError, faults: string[]) => {
  // A union reports each branch as well as itself; the branches alone would mislead.
  if (keyword === 'const' && instancePath !== '/format') return
  const path = instancePath
    .split('/')
    .slice(1)
    .map((token) => (/^\d+$/.test(token) ? Number(token) : token.replaceAll('~1', '/').replaceAll('~0', '~')))
  const unknown = params.additionalProperty as string | undefined
  const where = unknown === undefined ? path : [...path, unknown]
  const what = unknown === undefined ? (message ?? 'is not valid') : 'is not a known key'
  const name = where.join('/') || 'the pack'
  faults.push(faultLine(source, where, 'format', `${name} ${what}${enumText(params.allowedValues)}`, fixOf(keyword)))
}

const enumText = (allowed: unknown) => (Array.isArray(allowed) ? `: ${allowed.join(', ')}` : '')
const fixOf = (keyword: string) =>
  keyword === 'additionalProperties'
    ? 'Remove it, or correct its spelling.'
    : keyword === 'required'
      ? 'Add it.'
      : 'Correct the value.'
