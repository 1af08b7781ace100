import { type Fields, fieldsOf, isFields, listOf, textOf } from '../items.ts'
import { SourceError } from '../source.ts'

/** A NetBox row in the form of its dumps: choices are texts, references are keys. */
export type Row = { model: string; pk: string; fields: Fields }

/** The rows of documents: of `dumpdata` ({model, pk, fields}), or objects from endpoint (`dcim/sites`) to rows. */
export const rowsOf = (documents: readonly unknown[]): Row[] => {
  const there = new Set(
    documents.flatMap((document) =>
      Object.entries(fieldsOf(document)).flatMap(([endpoint, value]) =>
        listOf(servedIn(value)).map((row) => `${endpoint}/${String(fieldsOf(row).id)}`),
      ),
    ),
  )
  return documents.flatMap((document) => rowsIn(document, there))
}

const servedIn = (value: unknown): unknown => (Array.isArray(value) ? value : fieldsOf(value).results)

const rowsIn = (document: unknown, there: ReadonlySet<string>): Row[] => {
  if (Array.isArray(document)) return document.map(dumped)
  if (!isFields(document))
    throw new SourceError('it is not a NetBox export: neither a list of rows nor endpoints with rows')
  return Object.entries(document).flatMap(([endpoint, value]) => {
    const list = servedIn(value)
    if (!/^[a-z]+\/[a-z-]+$/.test(endpoint) || !Array.isArray(list))
      throw new SourceError(
        `it is not a NetBox export: ${JSON.stringify(endpoint).slice(0, 80)} is not an endpoint with a list of rows`,
      )
    return list.map((row, index) => served(endpoint, row, index, there))
  })
}

/** NetBox's internal models, and the secrets of its plugin, which are never read. */
const OWN = /^(auth|admin|contenttypes|sessions|users|django_rq|core|social_django|secrets|netbox_secrets)\./
/** Models of the group `extras` that describe the inventory; the others are scripts, logs and settings. */
const EXTRAS = /^extras\.(tag|taggeditem|customfield|customfieldchoiceset|journalentry|imageattachment|configcontext)$/
export const isOwn = ({ model }: Row): boolean =>
  OWN.test(model) || (model.startsWith('extras.') && !EXTRAS.test(model))

/** A row without pk comes from a dump with natural keys, in which only NetBox's internal rows lack one. */
const dumped = (row: unknown, index: number): Row => {
  const { model, pk, fields } = fieldsOf(row)
  if (typeof model !== 'string' || !isFields(fields))
    throw new SourceError(`it is not a NetBox export: row ${index + 1} has no model and fields`)
  const own = { model, pk: `row-${index}`, fields }
  if (pk === undefined && isOwn(own)) return own
  if (typeof pk !== 'number' && typeof pk !== 'string')
    throw new SourceError(`row ${index + 1}, a ${model.slice(0, 80)}, has no pk`)
  return { model, pk: String(pk), fields }
}

/** A row of the API: choices are {value}, references {id}, tags {slug}. A reference to a row elsewhere stays whole. */
const served = (endpoint: string, row: unknown, index: number, there: ReadonlySet<string>): Row => {
  const { id, ...members } = fieldsOf(row)
  if (typeof id !== 'number' && typeof id !== 'string')
    throw new SourceError(`row ${index + 1} of ${endpoint} has no id`)
  const [app, name = ''] = endpoint.split('/')
  const flat = Object.entries(members).map(([key, value]) => [
    key,
    isDeep(key) ? value : flatOf(value, key === 'cable' ? undefined : there),
  ])
  const model = name
    .replaceAll('-', '')
    .replace(/ies$/, 'y')
    .replace(/(?<=ch|ss|x)es$|(?<![is])s$/, '')
  return { model: `${app}.${model}`, pk: String(id), fields: Object.fromEntries(flat) }
}

const isDeep = (field: string): boolean => /^(tags|custom_fields|.*_terminations|local_context_data|data)$/.test(field)
const flatOf = (value: unknown, there: ReadonlySet<string> | undefined): unknown => {
  if (Array.isArray(value)) return value.map((one) => flatOf(one, there))
  const { value: choice, id: reference, url, display_url: _, ...copy } = fieldsOf(value)
  const [, place] = /\/api\/([a-z]+\/[a-z-]+\/\d+)\/?$/.exec(textOf(url) ?? '') ?? []
  const elsewhere = there && place !== undefined && !there.has(place)
  return choice ?? (elsewhere ? { id: reference, ...copy } : reference) ?? value
}

/** Indexes the rows by the references to them: `dcim.site/1`, content types, and tags. */
export const indexOf = (rows: readonly Row[]) => {
  const byId = new Map<string, Row>()
  for (const row of rows) {
    const id = idOf(row)
    if (byId.has(id)) throw new SourceError(`it contains ${id} twice`)
    byId.set(id, row)
  }
  const named = (value: unknown): string | undefined => {
    if (Array.isArray(value)) return value.join('.')
    if (typeof value === 'string' && value.includes('.')) return value
    const kind = byId.get(`contenttypes.contenttype/${String(value)}`)?.fields
    return kind ? `${String(kind.app_label)}.${String(kind.model)}` : undefined
  }
  // The API's endpoint has another name than its content type, and resources keep their ids.
  const from_api = rows.some(({ model }) => model === 'virtualization.interface')
  const kindOf = (value: unknown): string | undefined => {
    const kind = named(value)
    return from_api && kind === 'virtualization.vminterface' ? 'virtualization.interface' : kind
  }
  const tagged = new Map<string, string[]>()
  for (const { model, fields } of rows) {
    if (model !== 'extras.taggeditem') continue
    const to = `${kindOf(fields.content_type)}/${String(fields.object_id)}`
    const [given] = [fields.tag].flat()
    const tag = byId.get(`extras.tag/${String(given)}`)
    tagged.set(to, [...(tagged.get(to) ?? []), textOf(tag?.fields.slug) ?? String(given)])
  }
  const tagsOf = (row: Row): string[] => [
    ...listOf(row.fields.tags).flatMap((tag) => textOf(tag) ?? textOf(fieldsOf(tag).slug) ?? []),
    ...(tagged.get(idOf(row)) ?? []),
  ]
  return { rows, byId, kindOf, tagsOf }
}
export type Index = ReturnType<typeof indexOf>

export const idOf = ({ model, pk }: Row): string => `${model}/${pk}`
export const nameOf = ({ model, pk, fields }: Row): string =>
  textOf(fields.name) ?? textOf(fields.display_name) ?? `${model}-${pk}`
export const refTo = (model: string, value: unknown, { byId }: Index): Row | undefined =>
  value === null || value === undefined ? undefined : byId.get(`${model}/${String(value)}`)
