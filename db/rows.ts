import { DrizzleQueryError, getTableName, type Placeholder, QueryPromise, SQL, sql } from 'drizzle-orm'
import { getTableConfig, type PgColumn, PgDialect, type PgTable, type PgUpdateSetSource } from 'drizzle-orm/pg-core'
import type pg from 'pg'
import type { Queryable, Tx } from './client.ts'

/**
 * Writes of single rows on the path of every command: the text of a statement is built once per set of columns and
 * expressions. Building it each time would cost the client more than the rest of a small statement. As with Drizzle's
 * own builders, a statement is sent only when awaited, and the database's error is the `cause` of the error.
 */
export class Statement extends QueryPromise<pg.QueryResult> {
  readonly tx: Queryable
  readonly text: string
  readonly values: unknown[]

  constructor(tx: Queryable, text: string, values: unknown[]) {
    super()
    this.tx = tx
    this.text = text
    this.values = values
  }

  override async execute(): Promise<pg.QueryResult> {
    const { client } = this.tx._.session as unknown as { client: pg.Pool | pg.PoolClient }
    try {
      return await client.query(this.text, this.values)
    } catch (error) {
      throw new DrizzleQueryError(this.text, this.values, error as Error)
    }
  }
}

/** Receives a transaction's writes instead of the database, to send them later together (db/catalog/held/rows.ts). */
export type Keeper = {
  insert: (table: PgTable, rows: readonly object[]) => void
  update: (table: PgTable, key: object, set: object) => void
}
const keeperOf = (tx: Queryable): Keeper | undefined => (tx as { keeper?: Keeper }).keeper

/** A write that is passed to its transaction's keeper when awaited. */
class KeptWrite extends Statement {
  readonly keep: () => void

  constructor(tx: Queryable, keep: () => void) {
    super(tx, '', [])
    this.keep = keep
  }

  override async execute(): Promise<pg.QueryResult> {
    this.keep()
    return { command: '', rows: [], rowCount: 1, oid: 0, fields: [] }
  }
}

type Described = { name: string; columns: ReadonlyMap<string, PgColumn>; texts: Map<string, string> }
const tables = new WeakMap<PgTable, Described>()

const describe = (table: PgTable): Described => {
  const known = tables.get(table)
  if (known) return known
  const { schema, columns } = getTableConfig(table)
  const name = `${schema === undefined ? '' : `"${schema}".`}"${getTableName(table)}"`
  const described = { name, columns: new Map(columns.map((column) => [column.name, column])), texts: new Map() }
  tables.set(table, described)
  return described
}

type Part = { text: string; values: unknown[] }

/** Postgres' time, as a value. */
export const NOW = sql`clock_timestamp()`

const VALUE = '$1'
const dialect = new PgDialect()
/** Expressions that are constants of a module, by identity. */
const expressions = new WeakMap<SQL, Part>()

/** An expression has its own parameters; any other value is one. */
const partOf = ({ columns, name }: Described, column: string, value: unknown): Part => {
  const known = columns.get(column)
  if (!known) throw new Error(`${name} has no column ${column}`)
  if (!(value instanceof SQL)) return { text: VALUE, values: [value === null ? null : known.mapToDriverValue(value)] }
  const seen = expressions.get(value)
  if (seen) return seen
  const { sql: text, params: values } = dialect.sqlToQuery(value)
  const part = { text, values }
  expressions.set(value, part)
  return part
}

/** The texts of these parts, with their parameters numbered from one part to the next. */
const numbered = (parts: readonly Part[]): string[] => {
  let taken = 0
  return parts.map(({ text, values }) => {
    const before = taken
    taken += values.length
    return text.replaceAll(/\$(\d+)/g, (_, number: string) => `$${before + Number(number)}`)
  })
}

const textOf = ({ texts }: Described, key: string, write: () => string): string => {
  const known = texts.get(key)
  if (known !== undefined) return known
  const text = write()
  texts.set(key, text)
  return text
}

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ')
const givenOf = (row: object) => Object.entries(row).filter(([, value]) => value !== undefined)

/** Inserts one row; `more` follows the values, such as a conflict clause. Names and values are those of columns. */
export const insertRow = <T extends PgTable>(tx: Tx, table: T, row: T['$inferInsert'], more = ''): Statement =>
  insertRows(tx, table, [row], more)

/** Inserts a few rows in order, all with the same columns. */
export const insertRows = <T extends PgTable>(
  tx: Tx,
  table: T,
  rows: [T['$inferInsert'], ...T['$inferInsert'][]],
  more = '',
): Statement => {
  const keeper = keeperOf(tx)
  if (keeper) return new KeptWrite(tx, () => keeper.insert(table, rows))
  const described = describe(table)
  const names = givenOf(rows[0]).map(([name]) => name)
  const parts = rows.flatMap((row: Record<string, unknown>) => names.map((name) => partOf(described, name, row[name])))
  const text = textOf(described, `insert ${more} ${names.join()} ${keyOf(parts)}`, () => {
    const places = numbered(parts)
    const lines = rows.map((_, row) => `(${places.slice(row * names.length, (row + 1) * names.length)})`)
    return `insert into ${described.name} (${quoted(names)}) values ${lines} ${more}`
  })
  return new Statement(tx, text, valuesOf(parts))
}

const keyOf = (parts: readonly Part[]): string => parts.map(({ text }) => text).join()
const valuesOf = (parts: readonly Part[]): unknown[] => parts.flatMap(({ values }) => values)

/** Updates the one row with this key; `more` follows the key, such as a further condition. */
export const updateRow = <T extends PgTable>(
  tx: Queryable,
  table: T,
  key: Partial<T['$inferSelect']>,
  set: PgUpdateSetSource<T>,
  more = '',
): Statement => {
  const keeper = keeperOf(tx)
  // A kept write always succeeds, so a condition would be lost.
  if (keeper && more !== '') throw new Error('A kept write takes no condition: send it at once.')
  if (keeper) return new KeptWrite(tx, () => keeper.update(table, key, set))
  const described = describe(table)
  const [given, wanted] = [givenOf(set), Object.entries(key)]
  const names = [...given, ...wanted].map(([name]) => name)
  const parts = [...given, ...wanted].map(([name, value]) => partOf(described, name, value))
  const text = textOf(described, `update ${more} ${given.length} ${names.join()} ${keyOf(parts)}`, () => {
    const equal = numbered(parts).map((place, i) => `"${names[i]}" = ${place}`)
    const [changes, is] = [equal.slice(0, given.length), equal.slice(given.length)]
    return `update ${described.name} set ${changes.join(', ')} where ${is.join(' and ')} ${more}`
  })
  return new Statement(tx, text, valuesOf(parts))
}

const merged = new Map<string, string>()

/**
 * Combines writes into one statement, because each separate one costs the server an answer. They must touch different
 * rows and read none of each other's, because their order is undefined.
 */
export const inOne = (...statements: [Statement, ...Statement[]]): Statement => {
  const [{ tx }] = statements
  if (keeperOf(tx)) return new KeptWrite(tx, () => keepAll(statements))
  const key = statements.map(({ text }) => text).join(';')
  const text = merged.get(key) ?? mergedText(statements)
  merged.set(key, text)
  return new Statement(
    tx,
    text,
    statements.flatMap(({ values }) => values),
  )
}

const keepAll = (statements: readonly Statement[]): void => {
  for (const statement of statements) if (statement instanceof KeptWrite) statement.keep()
}

const mergedText = (parts: readonly Part[]): string => {
  const texts = numbered(parts)
  const last = texts.pop()
  return texts.length === 0
    ? (last as string)
    : `with ${texts.map((text, i) => `w${i} as (${text})`).join(', ')} ${last}`
}

/** A name that is not a cast (`::text`) and not part of a string (`':c'`). */
const NAME = /(?<![:\w']):([a-z_]+)/g

/**
 * A statement from a file: strips comment lines, and numbers each parameter `:name` in the order in which the names
 * first appear. `values` puts the given values in that order; it throws if a name is missing or unknown.
 */
export const named = (file: string): { text: string; values: (given: Record<string, unknown>) => unknown[] } => {
  const names: string[] = []
  const text = file.replace(/^--.*\n/gm, '').replace(NAME, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  return {
    text,
    values: (given) => {
      const wrong = [...names, ...Object.keys(given)].find((name) => !(name in given && names.includes(name)))
      if (wrong !== undefined) throw new Error(`The statement and its values do not agree on :${wrong}.`)
      return names.map((name) => given[name])
    },
  }
}

type Built<R> = { execute: (values?: Record<string, unknown>) => Promise<R> }

/**
 * A query of Drizzle whose text is built at its first use. Building a large one costs more than the rest of it. `build`
 * gets placeholders instead of values. It is sent at the call, in the transaction or on the pool that it is given.
 */
export const builtOnce = <N extends string, R>(
  names: readonly N[],
  build: (db: Queryable, given: Record<N, never>) => { prepare: (name: never) => Built<R> },
): ((db: Queryable, values: Record<N, unknown>) => Promise<R>) => {
  let built: Built<R> | undefined
  return (db, values) => {
    built ??= build(db, placesFor(names)).prepare(undefined as never)
    const { client } = db._.session as unknown as { client: pg.Pool | pg.PoolClient }
    const bound: Built<R> = Object.create(built, { client: { value: client } })
    return bound.execute(values)
  }
}

const placesFor = <N extends string>(names: readonly N[]) =>
  Object.fromEntries(names.map((name): [N, Placeholder] => [name, sql.placeholder(name)])) as unknown as Record<
    N,
    never
  >
