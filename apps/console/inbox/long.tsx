import { type CustomContainerComponentProps, type CustomItemComponentProps, WindowVirtualizer } from 'virtua'

type LongCardsProps<Row> = {
  rows: Row[]
  /** About how high a card is, with the gap below it. */
  height_px: number
  draw: (row: Row) => React.ReactElement
}

/** A long list of cards on a page that scrolls: only those near the view are drawn. */
export const LongCards = <Row,>({ rows, height_px, draw }: LongCardsProps<Row>) => (
  <WindowVirtualizer data={rows} itemSize={height_px} as={Cards} item={Card}>
    {draw}
  </WindowVirtualizer>
)

const Cards = ({ ref, style, children }: CustomContainerComponentProps) => (
  <ul ref={ref} style={{ ...style, pointerEvents: undefined }}>
    {children}
  </ul>
)

/** Shown before it is measured: what is hidden cannot take the focus. */
const Card = ({ ref, style, index, children }: CustomItemComponentProps) => (
  <li
    ref={ref}
    style={{ ...style, visibility: 'visible' }}
    aria-posinset={index + 1}
    aria-setsize={-1}
    className="pb-3"
  >
    {children}
  </li>
)
