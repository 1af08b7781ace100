import { Button } from '../forms/button.tsx'
import { type Rows, rowsOf } from '../queries/pages.ts'
import { LANGUAGE } from '../words/frame/language.ts'
import { t } from '../words/index.ts'
import { Unread } from './failure.tsx'
import { Empty } from './page.tsx'

export type Column<Row> = {
  name: string
  /** The content of the cell; `null` leaves it out on a phone. */
  cell: (row: Row) => React.ReactNode
  /** `lead` names the row and is its card's heading on a phone. Numbers are right-aligned. */
  kind?: 'lead' | 'number'
  className?: string
  /** Its width in a long table, where all rows have the columns of the head; by default a share of the rest. */
  width?: string
  /** Makes the column's head a button that sorts the rows. */
  sort?: Sort
}
export type Sort = { now: 'ascending' | 'descending' | undefined; press: () => void }

export type Table<Row> = {
  className?: string
  caption: string
  columns: Column<Row>[]
  rows: Row[]
  /** The member that differs in each row, or the key that a function makes. */
  keyOf: (keyof Row & string) | ((row: Row) => React.Key)
}
export const keyIn = <Row,>(row: Row, keyOf: Table<Row>['keyOf']): React.Key =>
  typeof keyOf === 'function' ? keyOf(row) : (row[keyOf] as React.Key)

/** A captioned table; on a phone every row is a card that names its values. */
export const DataTable = <Row,>({ className = '', caption, columns, rows, keyOf }: Table<Row>) => (
  <div className="overflow-x-auto">
    <table className={`table cards ${className}`}>
      <caption className="sr-only">{caption}</caption>
      <thead>
        <tr>
          <Heads columns={columns} />
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyIn(row, keyOf)}>
            <Cells columns={columns} row={row} />
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

export const Heads = <Row,>({ columns }: { columns: Column<Row>[] }) =>
  columns.map(({ name, kind, className, sort }) => (
    <th key={name} scope="col" className={classOf(kind, className)} aria-sort={sort?.now}>
      {sort ? (
        <button type="button" onClick={sort.press}>
          {name}
          <span aria-hidden="true">{sort.now === undefined ? '' : sort.now === 'ascending' ? ' ↑' : ' ↓'}</span>
        </button>
      ) : (
        name
      )}
    </th>
  ))

export const Cells = <Row,>({ columns, row }: { columns: Column<Row>[]; row: Row }) =>
  columns.map(({ name, cell, kind, className }) => (
    <td key={name} data-label={name} className={classOf(kind, className)}>
      {written(cell(row))}
    </td>
  ))

/** A number as its language writes it. */
const written = (content: React.ReactNode) => (typeof content === 'number' ? content.toLocaleString(LANGUAGE) : content)

const classOf = (...names: (string | undefined)[]) => names.filter(Boolean).join(' ') || undefined

/** The state of any list query; pages are optional. */
type List = {
  isPending: boolean
  isError: boolean
  error: unknown
  refetch: () => unknown
  hasNextPage?: boolean
  isFetchingNextPage?: boolean
  fetchNextPage?: () => unknown
}

type ListingProps = {
  list: List
  /** The text shown instead of an empty table, with the next step; `undefined` while it has rows. */
  empty: React.ReactNode | undefined
  next?: React.ReactNode
  /** Its parts are cards. */
  cards?: boolean
  children: React.ReactNode
}

/** A list in each of its states: loading, failed, empty, or its table with a button if more pages exist. */
export const Listing = ({ list, empty, next, cards = false, children }: ListingProps) => (
  <>
    <Unread query={list} />
    {list.isPending || (list.isError && empty !== undefined) ? null : cards && empty === undefined ? (
      children
    ) : (
      <div className="card">{empty === undefined ? children : <Empty next={next}>{empty}</Empty>}</div>
    )}
    {list.hasNextPage ? (
      <p className="text-center">
        <Button onClick={() => void list.fetchNextPage?.()} aria-disabled={list.isFetchingNextPage}>
          {list.isFetchingNextPage ? t.loading : t.more}
        </Button>
      </p>
    ) : null}
  </>
)

type ListTableProps<Row> = Omit<Table<Row>, 'rows'> & {
  empty: React.ReactNode
  next?: React.ReactNode
  /** Draws a long table differently. */
  draw?: (table: Table<Row>) => React.ReactNode
} & ({ list: List & Rows<Row>; rows?: never } | { list: List; rows: Row[] })

/** A list as a table, of its own rows unless others are given; without rows it says why and what to do next. */
export const ListTable = <Row,>({ empty, next, draw: Draw = DataTable, ...props }: ListTableProps<Row>) => {
  const rows = props.rows ?? rowsOf(props.list)
  return (
    <Listing list={props.list} empty={rows.length === 0 ? empty : undefined} next={next}>
      <Draw {...props} rows={rows} />
    </Listing>
  )
}
