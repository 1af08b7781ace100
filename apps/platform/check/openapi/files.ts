import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ownDocument } from '../../../gateway/routes/own.openapi.ts'
import type { Upstream } from '../../../gateway/routes/table.ts'
import type { Document } from '../../../shared/http/openapi.ts'
import { createTelemetry } from '../../../shared/telemetry.ts'
import { ROOT } from '../../base/paths.ts'
import { APPS } from '../../run/apps.ts'
import { run } from '../../servers/sources.ts'
import { contractSchemas, nameSchemas } from './names.ts'
import { publicDocument } from './public.ts'

/** The committed OpenAPI documents: made from the routes of each app that serves an HTTP API. */
const FOLDER = join(ROOT, 'apps/shared/contracts/openapi')
export const PUBLIC_DOCUMENT = join(FOLDER, 'public.json')
const MAKE_TYPES_MS = 120_000

type Described = { ready: () => PromiseLike<unknown>; swagger?: () => Document; close: () => PromiseLike<unknown> }
type Built = { app: Described; internal: Described }
type Buildable = { buildApp: (deps: unknown) => Built | Promise<Built> }

/** Replaces each dependency while route schemas are read: any member, call or `new` returns itself. No handler runs. */
const nothing: object = new Proxy(function nothing() {}, {
  get: (_target, name) => {
    if (name === Symbol.toPrimitive) return () => ''
    if (name === Symbol.iterator) return () => [][Symbol.iterator]()
    return name === 'then' ? undefined : nothing
  },
  apply: () => nothing,
  construct: () => nothing,
})

/** The listeners of an app; an app with only RPC has none to describe. */
const describe = async (name: string): Promise<{ listened: Document | undefined; internal: Document | undefined }> => {
  const { buildApp } = (await import(pathToFileURL(join(ROOT, 'apps', name, 'app.ts')).href)) as Buildable
  const telemetry = createTelemetry(name, { level: 'silent' })
  const deps = new Proxy({ telemetry }, { get: (known, key) => Reflect.get(known, key) ?? nothing })
  const { app, internal } = await buildApp(deps)
  await Promise.all([app.ready(), internal.ready()])
  return { listened: app.swagger?.(), internal: internal.swagger?.() }
}

/**
 * Properties of Unicode as the characters up to U+FFFF that have them. The patterns of the document are for tools in any
 * language, few of which know all properties; what lies beyond is left to the answer of the server.
 */
const PROPERTIES: Record<string, string> = {
  Cc: '\\u0000-\\u001f\\u007f-\\u009f',
  Cf: '\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb',
  Zl: '\\u2028',
  Zp: '\\u2029',
  Zs: ' \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000',
  DI: '\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180d\\u180f\\u2065\\u3164\\ufe00-\\ufe0f\\uffa0\\ufff0-\\ufff8',
  NChar: '\\ufdd0-\\ufdef\\ufffe\\uffff',
}
const portable = (name: string, value: unknown): unknown =>
  name === 'pattern' && typeof value === 'string'
    ? value.replace(/\\p\{(\w+)\}/g, (found, property: string) => PROPERTIES[property] ?? found)
    : value

/** The documents by file name, as the routes are now. Fails on what no client could use. */
export const openapiDocuments = async (): Promise<Map<string, string>> => {
  const exported = await contractSchemas()
  const documents = new Map<string, string>()
  const problems: string[] = []
  const add = (name: string, given: Document) => {
    const { document, problems: found } = nameSchemas(given, exported)
    problems.push(...found)
    documents.set(join(FOLDER, `${name}.json`), `${JSON.stringify(document, portable, 1)}\n`)
  }
  const apps = new Map<Upstream, Document>([['gateway', ownDocument()]])
  for (const { name, http } of APPS) {
    if (!http || name === 'gateway') continue
    const { listened, internal } = await describe(name)
    if (listened) apps.set(name as Upstream, listened)
    if (internal) add(`${name}-internal`, internal)
  }
  add('public', publicDocument(apps))
  if (problems.length > 0) throw new Error([...new Set(problems)].join('\n'))
  return documents
}

export const writeOpenapi = async (): Promise<string[]> => {
  const documents = await openapiDocuments()
  mkdirSync(FOLDER, { recursive: true })
  for (const [file, document] of documents) writeFileSync(file, document)
  return [...documents.keys()]
}

/** Makes the types of the client from the committed document, if it changed. */
export const makeClientTypes = (): Promise<string> =>
  run(process.execPath, [join(ROOT, 'apps/client/make-types.mjs')], { timeout_ms: MAKE_TYPES_MS })

/** Documents that differ from the routes. */
export const staleOpenapi = async (): Promise<string[]> => {
  const documents = await openapiDocuments()
  return [...documents]
    .filter(([file, document]) => !existsSync(file) || readFileSync(file, 'utf8') !== document)
    .map(([file]) => `${file.slice(ROOT.length + 1)}: run npm run openapi`)
}
