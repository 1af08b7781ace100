import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownDocument } from '../../../gateway/routes/own.openapi.ts'
import type { Upstream } from '../../../gateway/routes/table.ts'
import type { Document } from '../../../shared/http/openapi.ts'
import { createTelemetry } from '../../../shared/telemetry.ts'
import { ROOT } from '../../base/paths.ts'
import { APPS } from '../../run/apps.ts'
import { clientTypes } from './client.ts'
import { contractSchemas, nameSchemas } from './names.ts'
import { publicDocument } from './public.ts'

/** The committed OpenAPI documents: made from the routes of each app that serves an HTTP API. */
const FOLDER = join(ROOT, 'apps/shared/contracts/openapi')
export const PUBLIC_DOCUMENT = join(FOLDER, 'public.json')
const CLIENT_TYPES = join(ROOT, 'apps/client/schema.d.ts')

type Described = { ready: () => PromiseLike<unknown>; swagger?: () => Document; close: () => PromiseLike<unknown> }
type Built = { app: Described; internal: Described }
type Buildable = { buildApp: (deps: unknown) => Built | Promise<Built> }

/**
 * Replaces every dependency while the routes' schemas are read: any member, call or construction returns itself. No
 * handler runs.
 */
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
  const { buildApp } = (await import(join(ROOT, 'apps', name, 'app.ts'))) as Buildable
  const telemetry = createTelemetry(name, { level: 'silent' })
  const deps = new Proxy({ telemetry }, { get: (known, key) => Reflect.get(known, key) ?? nothing })
  const { app, internal } = await buildApp(deps)
  await Promise.all([app.ready(), internal.ready()])
  return { listened: app.swagger?.(), internal: internal.swagger?.() }
}

/** The documents by file name, from the current routes. Throws if a client could not use one. */
export const openapiDocuments = async (): Promise<Map<string, string>> => {
  const exported = await contractSchemas()
  const documents = new Map<string, string>()
  const problems: string[] = []
  const add = (name: string, given: Document) => {
    const { document, problems: found } = nameSchemas(given, exported)
    problems.push(...found)
    documents.set(join(FOLDER, `${name}.json`), `${JSON.stringify(document, null, 1)}\n`)
  }
  const apps = new Map<Upstream, Document>([['gateway', ownDocument()]])
  for (const { name, http } of APPS) {
    if (!http || name === 'gateway') continue
    const { listened, internal } = await describe(name)
    if (listened) apps.set(name as Upstream, listened)
    if (internal) add(`${name}-internal`, internal)
  }
  add('public', publicDocument(apps))
  documents.set(CLIENT_TYPES, await clientTypes(documents.get(PUBLIC_DOCUMENT) ?? ''))
  if (problems.length > 0) throw new Error([...new Set(problems)].join('\n'))
  return documents
}

export const writeOpenapi = async (): Promise<string[]> => {
  const documents = await openapiDocuments()
  mkdirSync(FOLDER, { recursive: true })
  for (const [file, document] of documents) writeFileSync(file, document)
  return [...documents.keys()]
}

/** Documents that differ from the routes. */
export const staleOpenapi = async (): Promise<string[]> => {
  const documents = await openapiDocuments()
  return [...documents]
    .filter(([file, document]) => !existsSync(file) || readFileSync(file, 'utf8') !== document)
    .map(([file]) => `${file.slice(ROOT.length + 1)}: run npm run openapi`)
}
