import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Document, operationsOf, spelled } from '../../../shared/http/openapi.ts'
import { ROOT } from '../../base/paths.ts'

const CONTRACTS = join(ROOT, 'apps/shared/contracts')
/** A shorter schema is easier to read than a name. */
const WORTH_A_NAME = 60
/** A longer schema that occurs twice must have a name. */
const LONG = 120

type Json = Record<string, unknown>
/** A schema that contracts export, with its name. */
export type Exported = readonly [name: string, schema: object]
type Named = { name: string; schema: Json; text: string }

/** Members that describe a schema without constraining it. */
const SAID = new Set(['description', 'title', 'example', 'examples', '$comment', '$id'])

/** A schema's constraints as text; equal texts accept the same values. */
const demandOf = (schema: unknown): string => JSON.stringify(bare(schema))

const bare = (value: unknown, place: 'schema' | 'members' | 'data' = 'schema'): unknown => {
  if (Array.isArray(value)) return value.map((one) => bare(one, place))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(place === 'schema' ? single(value) : value).filter(
    ([name]) => place !== 'schema' || !SAID.has(name),
  )
  return Object.fromEntries(
    members
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, bare(member, place === 'data' ? 'data' : within(name, place))]),
  )
}

/** An enum of one value becomes a const: Fastify's document writes it as a list. */
const single = (schema: object): object => {
  const { enum: values, ...rest } = schema as { enum?: unknown }
  return Array.isArray(values) && values.length === 1 ? { ...rest, const: values[0] } : schema
}

/** The kind of content under a member of a schema: further schemas, members by name, or plain data. */
const within = (name: string, place: 'schema' | 'members'): 'schema' | 'members' | 'data' => {
  if (place === 'members') return 'schema'
  if (name === 'properties' || name === 'patternProperties' || name === '$defs') return 'members'
  return ['enum', 'const', 'default', 'required'].includes(name) ? 'data' : 'schema'
}

/** Every schema that a module of contracts exports. */
export const contractSchemas = async (): Promise<Exported[]> => {
  const files = readdirSync(CONTRACTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/^(gen|client)\//.test(file))
    .sort()
  const modules = await Promise.all(
    files.map((file) => import(pathToFileURL(join(CONTRACTS, file)).href) as Promise<Json>),
  )
  const isSchema = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && ('~kind' in value || '~unsafe' in value)
  return modules.flatMap((module) =>
    Object.entries(module).flatMap(([name, value]) => (isSchema(value) ? [[name, value] as const] : [])),
  )
}

/** The schemas that are worth a name, by their constraints; of equal ones, the one with the shorter name. */
const namesOf = (exported: readonly Exported[]): Map<string, Named> => {
  const names = new Map<string, Named>()
  for (const [name, value] of exported) {
    const schema = spelled(value) as Json
    const one = { name, schema, text: demandOf(schema) }
    const known = names.get(one.text)
    if (isWorth(one) && (!known || name.length < known.name.length)) names.set(one.text, one)
  }
  return names
}

type Naming = { document: Document; problems: string[] }

/**
 * Gives a name to every schema that contracts export, wherever it occurs, and refers to it there. Reports long schemas
 * that occur twice without a name, and names used for two schemas.
 */
export const nameSchemas = (given: Document, exported: readonly Exported[]): Naming => {
  const document = structuredClone(given)
  const names = namesOf(exported)
  const problems: string[] = []
  const schemas: Record<string, Json> = {}
  const texts = new Map<string, string>()
  const places = new Map<string, Set<string>>()

  const named = (schema: Json, place: string): Json => {
    const text = demandOf(schema)
    const found = names.get(text)
    if (!found) {
      const whole = parts(schema, place)
      const long = JSON.stringify(bare(whole)).length > LONG && schema.type !== 'array' && !isScalar(schema)
      if (long) places.set(text, (places.get(text) ?? new Set()).add(place))
      return whole
    }
    refer(found)
    const description = schema.description === found.schema.description ? undefined : schema.description
    return { $ref: `#/components/schemas/${found.name}`, ...(description !== undefined && { description }) }
  }
  const refer = ({ name, schema, text }: Named) => {
    const known = texts.get(name)
    if (known !== undefined && known !== text)
      problems.push(`Two schemas are exported as ${name}: rename one in contracts.`)
    if (known !== undefined) return
    texts.set(name, text)
    schemas[name] = parts(schema, name)
  }
  const parts = (schema: Json, place: string): Json =>
    Object.fromEntries(
      Object.entries(single(schema)).map(([member, value]) => {
        if (member === 'properties')
          return [member, map(value as Record<string, Json>, (one, name) => named(one, `${place}.${name}`))]
        if (['anyOf', 'allOf', 'oneOf', 'prefixItems'].includes(member))
          return [member, (value as Json[]).map((one, at) => named(one, `${place}/${at}`))]
        if (['items', 'additionalProperties', 'not', 'contains'].includes(member) && typeof value === 'object')
          return [member, named(value as Json, `${place}[]`)]
        return [member, value]
      }),
    )

  for (const { operation } of [...operationsOf(document), ...operationsOf({ paths: document.webhooks ?? {} })]) {
    const place = operation.operationId ?? ''
    const contents = [operation.requestBody, ...Object.values(operation.responses)]
    for (const content of contents)
      for (const media of Object.values((content && 'content' in content && content.content) || {}))
        if (media.schema && !('$ref' in media.schema)) media.schema = named(media.schema as Json, place)
    for (const parameter of operation.parameters ?? [])
      parameter.schema = named(parameter.schema as Json, `${place}?${parameter.name}`)
  }
  document.components = { ...document.components, schemas: { ...document.components?.schemas, ...sorted(schemas) } }
  return { document, problems: [...new Set([...problems, ...repeated(places)])] }
}

const isScalar = ({ type, enum: values, properties }: Json) =>
  !values && !properties && ['string', 'integer', 'number', 'boolean'].includes(String(type))
const isWorth = ({ schema, text }: Named) => text.length >= WORTH_A_NAME && !isScalar(schema)

/** Long schemas in two places; parts of a reported schema are not reported again. */
const repeated = (places: Map<string, Set<string>>): string[] => {
  const twice = [...places].filter(([, at]) => at.size > 1)
  return twice
    .filter(([text]) => !twice.some(([whole]) => whole.length > text.length && whole.includes(text)))
    .map(([, at]) => {
      const [first, second, ...more] = at
      return `This schema occurs in ${first} and ${second}${more.length > 0 ? ` and ${more.length} more` : ''}: export it from contracts.`
    })
}

const map = <A, B>(members: Record<string, A>, change: (member: A, name: string) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(members).map(([name, member]) => [name, change(member, name)]))
const sorted = <T>(members: Record<string, T>): Record<string, T> =>
  Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)))
