import { Fragment, useSyncExternalStore } from 'react'
import { type CustomContainerComponentProps, type CustomItemComponentProps, WindowVirtualizer } from 'virtua'
import { Cells, DataTable, Heads, type Table } from './table.tsx'

/**
 * The body of a table whose virtualizer draws only the rows near the view. Its head is one row. It stays open to the
 * pointer while it scrolls: closing and opening it has the browser style every cell twice for each scroll.
 */
export const WindowBody = ({ ref, style, children }: CustomContainerComponentProps) => (
  <tbody ref={ref} style={{ ...style, pointerEvents: undefined }}>
    {children}
  </tbody>
)

/** A row that says which of all it is. Shown before it is measured: what is hidden cannot take the focus. */
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

/** A long table on a page that scrolls: as `DataTable`, but only the rows near the view are drawn. Paper has them all. */
export const LongTable = <Row,>(table: Table<Row>) =>
  useSyncExternalStore(whenPrinted, () => paper.matches) ? <DataTable {...table} /> : <Window {...table} />

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
        <Fragment key={keyOf(row)}>
          <Cells columns={columns} row={row} />
        </Fragment>
      )}
    </WindowVirtualizer>
  </table>
)
const ROW_PX = 40

/** Columns keep their widths, whichever rows are drawn: the lead has most of the room. */
const tracksOf = <Row,>(columns: Table<Row>['columns']) => {
  const tracks = (shown: typeof columns) => shown.map(({ kind }) => `minmax(0, ${kind === 'lead' ? 3 : 1}fr)`).join(' ')
  const fewer = columns.filter(({ className }) => !className?.includes('more'))
  return { '--tracks': tracks(columns), '--fewer-tracks': tracks(fewer) } as React.CSSProperties
}
