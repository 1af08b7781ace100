import { type SQL, sql } from 'drizzle-orm'
import { anyCase, like } from '../../columns.ts'
import { hasHealth, healthNow } from './health-now.ts'
import { ridsOf } from './paths.ts'
import { array } from './rows.ts'

/** A filter expression after parsing (catalog.md 7.1). `raw`: an unquoted word, which may be a number or a boolean. */
export type Comparison = '=' | '!=' | '<' | '<=' | '>' | '>=' | ':'
export type FilterTest = {
  kind: 'test'
  field: string[]
  comparison: Comparison
  value: string
  raw: boolean
  offset: number
}
export type Filter = FilterTest | { kind: 'and' | 'or'; items: Filter[] } | { kind: 'not'; item: Filter }

/** Thrown if a test makes no sense for its field; the caller adds the position. */
export class FilterMismatch extends Error {
  readonly offset: number
  constructor(test: FilterTest, message: string) {
    super(message)
    this.offset = test.offset
  }
}

/** What the filter needs to know about this process's types. */
export type FilterTypes = {
  idsOf: (type_keys: readonly string[]) => number[]
  exactIds: (type_key: string) => number[]
  levels: Record<'region_id' | 'datacenter_id' | 'layer_id' | 'segment_id', number[]>
  /** Whether a text is a valid time, by the same rule as for all input. */
  isTime: (text: string) => boolean
  /** When health is judged. */
  now: Date
}

const TEXT: Record<string, SQL> = {
  resource_id: sql`r.resource_id`,
  name: sql`r.name`,
  display_name: sql`r.display_name`,
  owner: sql`r.owner`,
  parent_id: sql`p.resource_id`,
  created_by: sql`r.created_by`,
  updated_by: sql`s.updated_by`,
  lifecycle_status: sql`s.lifecycle_status`,
  drift: sql`s.drift_status`,
}
/** These are stored in NFC. */
const SPELLED = new Set(['name', 'display_name', 'owner'])
const NUMBERS: Record<string, SQL> = {
  version: sql`s.version`,
  type_version: sql`r.type_version`,
  generation: sql`s.generation`,
  observed_generation: sql`s.observed_generation`,
  health_revision: sql`s.health_revision`,
}
const TIMES: Record<string, SQL> = { created_at: sql`r.created_at`, updated_at: sql`s.updated_at` }
/** A member of a table by a client's word, which may also be a name that every object inherits. */
const own = <T>(table: Readonly<Record<string, T>>, word: string): T | undefined =>
  Object.hasOwn(table, word) ? table[word] : undefined
const OPERATORS = { '<': sql`<`, '<=': sql`<=`, '>': sql`>`, '>=': sql`>=` }

/** A filter as a condition over r (resource), s (resource_state) and p (parent). Never null, so NOT inverts it. */
export const filterSql = (filter: Filter, types: FilterTypes): SQL => {
  if (filter.kind === 'not') return sql`(not ${filterSql(filter.item, types)})`
  if (filter.kind === 'test') return sql`coalesce(${testSql(filter, types)}, false)`
  const parts = filter.items.map((item) => filterSql(item, types))
  return sql`(${sql.join(parts, filter.kind === 'and' ? sql` and ` : sql` or `)})`
}

const testSql = (test: FilterTest, types: FilterTypes): SQL => {
  const [first = '', ...rest] = test.field
  if (rest.length === 0) {
    const [text, number, time] = [own(TEXT, first), own(NUMBERS, first), own(TIMES, first)]
    if (text) return textSql(text, SPELLED.has(first) ? { ...test, value: test.value.normalize('NFC') } : test)
    if (number) return orderedSql(number, test, sql`numeric`, isNumber(test.value), 'a number')
    if (time) return orderedSql(time, test, sql`timestamptz`, types.isTime(atMidnight(test.value)), 'an RFC 3339 time')
    if (first === 'health_status')
      return test.comparison === '=' ? hasHealth(types.now, [test.value]) : textSql(healthNow(types.now), test)
    if (first === 'type_key') return typeSql(test, types)
    if (first === 'layer_kind') return layerKindSql(test, types)
    if (first === 'provides') return providesSql(test)
  }
  if (first === 'scope' && rest.length === 1) return scopeSql(test, types)
  if (first === 'labels' && rest.length === 1) return labelSql(rest[0] as string, test)
  if (first === 'desired_state' && rest.length > 0) return stateSql(sql`r.desired_state`, rest, test)
  if (first === 'observed_state' && rest.length > 0) return stateSql(sql`s.observed_state`, rest, test)
  throw new FilterMismatch(test, `${test.field.join('.')} cannot be used in a filter`)
}

/** Integers have at most 16 digits (catalog.md 1). */
const isNumber = (text: string) => /^-?\d{1,16}(\.\d{1,15})?$/.test(text)
/** A date means the start of that day. */
const atMidnight = (text: string) => (/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)
const isPresence = ({ comparison, value, raw }: FilterTest) => comparison === ':' && raw && value === '*'

const only = (test: FilterTest, ...allowed: Comparison[]) => {
  if (!allowed.includes(test.comparison))
    throw new FilterMismatch(test, `${test.field.join('.')} can only be compared with ${allowed.join(' ')}`)
}

const textSql = (column: SQL, test: FilterTest): SQL => {
  const { comparison, value } = test
  if (isPresence(test)) return sql`${column} is not null`
  if (comparison === ':') return sql`${column}${anyCase(value)} ilike ${like(value)}`
  if (comparison === '=') return sql`${column} = ${value}`
  if (comparison === '!=') return sql`${column} is distinct from ${value}`
  return sql`${column} collate "C" ${OPERATORS[comparison]} ${value}`
}

const orderedSql = (column: SQL, test: FilterTest, kind: SQL, fits: boolean, wanted: string): SQL => {
  if (isPresence(test)) return sql`${column} is not null`
  only(test, '=', '!=', '<', '<=', '>', '>=')
  if (!fits) throw new FilterMismatch(test, `${test.field.join('.')} must be compared with ${wanted}`)
  const value = sql`${test.value}::${kind}`
  if (test.comparison === '=') return sql`${column} = ${value}`
  if (test.comparison === '!=') return sql`${column} is distinct from ${value}`
  return sql`${column} ${OPERATORS[test.comparison as keyof typeof OPERATORS]} ${value}`
}

const typeSql = (test: FilterTest, types: FilterTypes): SQL => {
  only(test, '=', '!=', ':')
  if (isPresence(test)) return sql`true`
  const ids = test.comparison === ':' ? types.idsOf([test.value]) : types.exactIds(test.value)
  const is = sql`r.type_id = any(${array(ids, 'smallint')})`
  return test.comparison === '!=' ? sql`not (${is})` : is
}

/** Uses the row numbers in the path, not the paths of ancestors, so it also works for a past path. */
const above = (type_ids: number[], more: SQL): SQL =>
  sql`exists (select 1 from catalog.resource a
        where a.rid = any(${ridsOf(sql`r.path`)}) and a.type_id = any(${array(type_ids, 'smallint')}) and ${more})`

const scopeSql = (test: FilterTest, types: FilterTypes): SQL => {
  const type_ids = own(types.levels, test.field[1] ?? '')
  if (!type_ids) throw new FilterMismatch(test, `scope has region_id, datacenter_id, layer_id and segment_id`)
  only(test, '=', '!=', ':')
  const is = above(type_ids, isPresence(test) ? sql`true` : sql`a.resource_id = ${test.value}`)
  return test.comparison === '!=' ? sql`not ${is}` : is
}

const layerKindSql = (test: FilterTest, types: FilterTypes): SQL => {
  only(test, '=', '!=', ':')
  const is = above(
    types.levels.layer_id,
    isPresence(test) ? sql`true` : sql`a.desired_state->>'layer_kind' = ${test.value}`,
  )
  return test.comparison === '!=' ? sql`not ${is}` : is
}

const providesSql = (test: FilterTest): SQL => {
  only(test, '=', '!=', ':')
  const named = isPresence(test) ? sql`true` : sql`c.capability_key = ${test.value}`
  const is = sql`exists (select 1 from catalog.provider v
      join catalog.capability_def c on c.id = v.capability_id and c.version = v.version
      where v.rid = r.rid and v.withdrawn_at is null and ${named})`
  return test.comparison === '!=' ? sql`not ${is}` : is
}

const labelSql = (key: string, test: FilterTest): SQL => {
  const has = (value: string) => sql`r.labels @> ${JSON.stringify({ [key]: value })}::jsonb`
  if (test.comparison === '=') return has(test.value)
  if (test.comparison === '!=') return sql`not ${has(test.value)}`
  return textSql(sql`(r.labels->>${key})`, test)
}

/** The JSON values that an unquoted word may mean: the text, and the number or boolean that it spells. */
const meanings = ({ value, raw }: FilterTest): unknown[] => {
  if (!raw) return [value]
  if (value === 'true' || value === 'false') return [value === 'true', value]
  return isNumber(value) ? [Number(value), value] : [value]
}

const stateSql = (column: SQL, path: string[], test: FilterTest): SQL => {
  const at = sql`${column} #> ${array(path, 'text')}`
  const holds = (value: unknown) => {
    const document = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)
    return sql`${column} @> ${JSON.stringify(document)}::jsonb`
  }
  const equal = sql`(${sql.join(meanings(test).map(holds), sql` or `)})`
  if (isPresence(test)) return sql`(${at}) is not null`
  if (test.comparison === '=') return equal
  if (test.comparison === '!=') return sql`not ${equal}`
  if (test.comparison === ':') {
    const members = meanings(test).map((value) => holds([value]))
    const text = sql`(${column} #>> ${array(path, 'text')})${anyCase(test.value)}`
    return sql`(${text} ilike ${like(test.value)} or ${sql.join(members, sql` or `)})`
  }
  const operator = OPERATORS[test.comparison]
  return test.raw && isNumber(test.value)
    ? sql`(case when jsonb_typeof(${at}) = 'number' then (${at})::numeric ${operator} ${test.value}::numeric end)`
    : sql`(case when jsonb_typeof(${at}) = 'string' then (${column} #>> ${array(path, 'text')}) collate "C" ${operator} ${test.value} end)`
}
