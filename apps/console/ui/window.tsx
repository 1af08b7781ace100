import { Fragment, useSyncExternalStore } from 'react'
import { type CustomContainerComponentProps, type CustomItemComponentProps, WindowVirtualizer } from 'virtua'
import { Cells, DataTable, Heads, keyIn, type Table } from './table.tsx'

/**
 * The body of a table whose virtualizer draws only the rows near the view. Its head is one row. It keeps pointer events
 * while it scrolls: turning them off and on makes the browser style every cell twice per scroll.
 */
export const WindowBody = ({ ref, style, children }: CustomContainerComponentProps) => (
  <tbody ref={ref} style={{ ...style, pointerEvents: undefined }}>
    {children}
  </tbody>
)

/** A row with its position among all rows. Visible before it is measured: hidden elements cannot take the focus. */
export const WindowRow = ({ ref, style, index, children }: CustomItemComponentProps) => (
  <tr ref={ref} style={{ ...style, visibility: 'visible' }} aria-rowindex={index + 2}>
    {children}
  </tr>
)

const paper = matchMedia('print')
const whenPrinted = (told: () => void) => {
  paper.addEventListener('change', told)
  return () => paper.removeEventListener('change', told)
}

const usePaper = (): boolean => useSyncExternalStore(whenPrinted, () => paper.matches)

/** Longer tables and lists draw only the rows near the view. */
const MOST_DRAWN = 100

/** A table that may be long, on a scrolling page: it draws only the rows near the view. Paper has all of them. */
export const LongTable = <Row,>(table: Table<Row>) =>
  usePaper() || table.rows.length <= MOST_DRAWN ? <DataTable {...table} /> : <Window {...table} />

type LongListProps<Row> = { rows: Row[]; keyOf: (row: Row) => string; children: (row: Row) => React.ReactNode }

/** The same for the rows of an ordered list. */
export const LongList = <Row,>({ rows, keyOf, children }: LongListProps<Row>) => {
  const paper = usePaper()
  if (paper || rows.length <= MOST_DRAWN)
    return (
      <ol>
        {rows.map((row) => (
          <li key={keyOf(row)}>{children(row)}</li>
        ))}
      </ol>
    )
  return (
    <WindowVirtualizer data={rows} itemSize={ROW_PX} as="ol" item={ListItem}>
      {(row) => <Fragment key={keyOf(row)}>{children(row)}</Fragment>}
    </WindowVirtualizer>
  )
}
const ListItem = ({ ref, style, index, children }: CustomItemComponentProps) => (
  <li ref={ref} style={{ ...style, visibility: 'visible' }} aria-posinset={index + 1}>
    {children}
  </li>
)

const Window = <Row,>({ className = '', caption, columns, rows, keyOf }: Table<Row>) => (
  <table className={`table cards long ${className}`} aria-rowcount={rows.length + 1} style={tracksOf(columns)}>
    <caption className="sr-only">{caption}</caption>
    <thead>
      <tr aria-rowindex={1}>
        <Heads columns={columns} />
      </tr>
    </thead>
    <WindowVirtualizer data={rows} itemSize={ROW_PX} as={WindowBody} item={WindowRow}>
      {(row) => (
        <Fragment key={keyIn(row, keyOf)}>
          <Cells columns={columns} row={row} />
        </Fragment>
      )}
    </WindowVirtualizer>
  </table>
)
const ROW_PX = 40

/** Columns keep their widths, whichever rows are drawn; the lead column is the widest. */
const tracksOf = <Row,>(columns: Table<Row>['columns']) => {
  const tracks = (shown: typeof columns) =>
    shown.map(({ kind, width }) => width ?? `minmax(0, ${kind === 'lead' ? 3 : 1}fr)`).join(' ')
  const fewer = columns.filter(({ className }) => !className?.includes('more'))
  return { '--tracks': tracks(columns), '--fewer-tracks': tracks(fewer) } as React.CSSProperties
}
