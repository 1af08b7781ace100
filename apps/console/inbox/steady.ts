import { useLayoutEffect, useRef, useState } from 'react'
import type { Waiting } from '../api/types.ts'

/** A row in its place; `gone` once it no longer waits. */
export type Seen<Row> = { row: Row; gone: boolean }
/** The rows to show, and how many new ones are not among them yet. */
type Placed<Row> = { rows: Seen<Row>[]; news: number }

/**
 * Places the rows of a new read among those shown. A row that no longer waits keeps its place. The first `fixed` rows do
 * not move: new ones that would move them are counted. More than there are also forbids new ones at the end.
 */
export const placed = <Row>(
  shown: readonly Seen<Row>[],
  fresh: readonly Row[],
  keyOf: (row: Row) => string,
  fixed: number,
): Placed<Row> => {
  const known = new Set(shown.map(({ row }) => keyOf(row)))
  const now = new Map(fresh.map((row) => [keyOf(row), row]))
  const kept = shown.map(({ row }) => ({ row: now.get(keyOf(row)) ?? row, gone: !now.has(keyOf(row)) }))
  const still = new Set(kept.slice(0, fixed).map(({ row }) => row))
  const from = fixed > shown.length ? fresh.length : fresh.findLastIndex((row) => still.has(row)) + 1
  const waits = (row: Row, at: number) => at < from && !known.has(keyOf(row))
  const rest = fresh.filter((row, at) => !still.has(row) && !waits(row, at))
  const rows = [...kept.slice(0, fixed), ...rest.map((row) => ({ row, gone: false }))]
  for (const [at, seen] of kept.entries()) {
    if (at < fixed || !seen.gone) continue
    const before = kept[at - 1]?.row
    rows.splice(rows.findIndex(({ row }) => row === before) + 1, 0, seen)
  }
  return { rows, news: fresh.filter(waits).length }
}

const UNREAD: readonly never[] = []
type Held = { on: boolean; fixed: () => number }

/** The rows of a list, steady while the page is open; another list (`of`) starts anew. `take` shows the new rows. */
export const useSteady = <Row>(
  fresh: readonly Row[] = UNREAD,
  keyOf: (row: Row) => string,
  { of, on, fixed }: Held & { of: string },
) => {
  const [state, setState] = useState<Placed<Row> & { fresh: readonly Row[]; of: string; on: boolean }>({
    ...{ fresh: UNREAD, of, on, rows: [], news: 0 },
  })
  if (state.fresh !== fresh || state.of !== of || state.on !== on) {
    // The first read of a list has no row to hold.
    const first = state.of !== of || state.fresh === UNREAD
    setState({ fresh, of, on, ...placed(first ? [] : state.rows, fresh, keyOf, first || !on ? 0 : fixed()) })
  }
  const take = () => setState({ ...state, ...placed(state.rows, fresh, keyOf, 0) })
  return { rows: state.rows, news: state.news, take }
}

type Spot = { list: Element | null; at: number }

/**
 * Whether the pointer or the focus is among the lists of an element, and how many rows of a list must not move: those up
 * to the row that either is on, and all of the upper list if that row is in the lower one.
 */
export const useHeld = () => {
  const spots = useRef<{ pointer?: Spot | undefined; focus?: Spot | undefined }>({})
  const [on, setOn] = useState(false)
  const note = (by: 'pointer' | 'focus', target: EventTarget | null, { currentTarget }: React.SyntheticEvent) => {
    const row = target instanceof Element && currentTarget.contains(target) ? target.closest('li') : undefined
    // Beside a row, such as on the way to the button with the news, the last one counts.
    if (row === undefined) spots.current[by] = undefined
    else if (row) spots.current[by] = { list: row.parentElement, at: placeOf(row) }
    setOn(Object.values(spots.current).some((spot) => spot !== undefined))
  }
  const fixedIn = (upper: boolean) => () =>
    Math.max(
      0,
      ...Object.values(spots.current).map((spot) =>
        spot === undefined ? 0 : upper === isUpper(spot) ? spot.at : upper ? Number.POSITIVE_INFINITY : 0,
      ),
    )
  return {
    lines: { on, fixed: fixedIn(true) },
    cards: { on, fixed: fixedIn(false) },
    watch: {
      onPointerOver: (event: React.PointerEvent) => note('pointer', event.target, event),
      onPointerLeave: (event: React.PointerEvent) => note('pointer', null, event),
      onFocus: (event: React.FocusEvent) => note('focus', event.target, event),
      onBlur: (event: React.FocusEvent) => note('focus', event.relatedTarget, event),
    },
  }
}
const isUpper = ({ list }: Spot): boolean => list?.hasAttribute('data-lines') ?? false
/** Its place in its list, from 1; of a long list only some rows are in the page. */
const placeOf = (row: Element): number =>
  Number(row.ariaPosInSet ?? [...(row.parentElement?.children ?? [])].indexOf(row) + 1)

/** Keeps the height of an element that has less to show once it is gone. */
export const useHeight = <Tag extends HTMLElement>(gone: boolean) => {
  const ref = useRef<Tag>(null)
  const [minHeight, setHeight] = useState<number>()
  useLayoutEffect(() => {
    if (!gone) setHeight(ref.current?.offsetHeight)
  })
  return { ref, style: gone ? { minHeight } : undefined }
}

/** A failure that holds an operation, a patch to vote on, or a deadline. */
export type Line = Waiting['failures' | 'patches' | 'expiring'][number]

const HOUR_MS = 3_600_000
const endOf = (line: Line): number =>
  Date.parse(('kind' in line ? line.expires_at : 'patch_id' in line && line.deadline_at) || '')

/**
 * One group per operation: its failure, below it the patches that mend it, then deadlines. First the groups with something
 * that ends within an hour, then those with failures, patches and later deadlines.
 */
export const linesOf = ({ patches, failures, expiring, as_of }: Waiting): Line[] => {
  const soon = (line: Line) => endOf(line) < Date.parse(as_of.time) + HOUR_MS
  const all = [...failures, ...patches, ...expiring]
  const ranked = [...all.filter(soon).sort((a, b) => endOf(a) - endOf(b)), ...all.filter((line) => !soon(line))]
  return [...Map.groupBy(ranked, groupOf).values()].flatMap((lines) => lines.sort((a, b) => placeIn(a) - placeIn(b)))
}
const placeIn = (line: Line): number => ('kind' in line ? 2 : 'patch_id' in line ? 1 : 0)
/** Lines of one operation stay together. */
export const groupOf = (line: Line): string => line.operation_id ?? lineKey(line)
export const lineKey = (line: Line): string =>
  'patch_id' in line
    ? line.patch_id
    : 'kind' in line
      ? [line.kind, line.operation_id ?? line.plan_id, line.gate_id].join(' ')
      : line.operation_id
