import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownDocument } from '../../gateway/routes/own.openapi.ts'
import { createTelemetry } from '../../shared/telemetry.ts'
import { ROOT } from '../base/paths.ts'
import { APPS } from '../run/apps.ts'

/** The OpenAPI documents: made from the routes of each app that serves an HTTP API, and committed. */
const FOLDER = join(ROOT, 'apps/shared/contracts/openapi')

type Described = { ready: () => PromiseLike<unknown>; swagger?: () => object; close: () => PromiseLike<unknown> }
type Built = { app: Described; internal: Described }
type Buildable = { buildApp: (deps: unknown) => Built | Promise<Built> }

/**
 * Stands for every dependency while only the routes' schemas are read: any member, call or construction of it is
 * itself. No handler runs.
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

/** The documents of an app's listeners by the name of their file; of a listener with RPC alone there is none. */
const describe = async (name: string): Promise<[string, object][]> => {
  const { buildApp } = (await import(join(ROOT, 'apps', name, 'app.ts'))) as Buildable
  const telemetry = createTelemetry(name, { level: 'silent' })
  const deps = new Proxy({ telemetry }, { get: (known, key) => Reflect.get(known, key) ?? nothing })
  const { app, internal } = await buildApp(deps)
  await Promise.all([app.ready(), internal.ready()])
  const described: [string, object | undefined][] = [
    [name, app.swagger?.()],
    [`${name}-internal`, internal.swagger?.()],
  ]
  return described.flatMap(([file, document]) => (document ? [[file, document]] : []))
}

/** The documents by file name, as the routes are now. */
export const openapiDocuments = async (): Promise<Map<string, string>> => {
  const documents = new Map<string, string>()
  const add = (name: string, document: object) =>
    documents.set(join(FOLDER, `${name}.json`), `${JSON.stringify(document, null, 2)}\n`)
  for (const { name, http } of APPS) {
    if (!http || name === 'gateway') continue
    for (const [file, document] of await describe(name)) add(file, document)
  }
  add('gateway', ownDocument())
  return documents
}

export const writeOpenapi = async (): Promise<string[]> => {
  const documents = await openapiDocuments()
  mkdirSync(FOLDER, { recursive: true })
  for (const [file, document] of documents) writeFileSync(file, document)
  return [...documents.keys()]
}

/** Documents that say something else than the routes. */
export const staleOpenapi = async (): Promise<string[]> => {
  const documents = await openapiDocuments()
  return [...documents]
    .filter(([file, document]) => !existsSync(file) || readFileSync(file, 'utf8') !== document)
    .map(([file]) => `${file.slice(ROOT.length + 1)}: run npm run openapi`)
}
