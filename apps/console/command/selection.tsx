import { Suspense, useState } from 'react'
import { display } from '../kit/prefs.ts'

/** How many rows may be selected: each needs a command of its own. */
const MOST = 20

type Selectable<Row> = {
  keyOf: (row: Row) => string
  isAble: (row: Row) => boolean
  /** While fewer rows can be selected, selection is off. */
  least: number
}

/** The selected rows among those that can still be selected. */
export const useSelection = <Row,>(rows: readonly Row[], { keyOf, isAble, least }: Selectable<Row>) => {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set())
  const able = rows.filter(isAble)
  const chosen = able.filter((row) => keys.has(keyOf(row)))
  const on = able.length >= least
  const toggle = (row: Row) =>
    setKeys((before) => (before.has(keyOf(row)) || chosen.length < MOST ? flipped(before, keyOf(row)) : before))
  return {
    on,
    chosen,
    isAble: (row: Row) => on && isAble(row),
    has: (row: Row) => keys.has(keyOf(row)),
    toggle,
    all: () => setKeys(new Set(able.slice(0, MOST).map(keyOf))),
    clear: () => setKeys(new Set()),
  }
}
export type Selection<Row> = ReturnType<typeof useSelection<Row>>

/** The set with this key added, or removed if the set has it. */
export const flipped = (keys: ReadonlySet<string>, key: string): ReadonlySet<string> =>
  keys.has(key) ? new Set([...keys].filter((other) => other !== key)) : new Set([...keys, key])

/** `x` on a row's link selects or deselects it. */
export const selectByKey =
  <Row,>(row: Row, { isAble, toggle }: Selection<Row>) =>
  ({ key }: React.KeyboardEvent): void => {
    if (key === 'x' && display().shortcuts && isAble(row)) toggle(row)
  }

type SelectBoxProps<Row> = { row: Row; selection: Selection<Row>; label: string }

/** The checkbox that selects a row. */
export const SelectBox = <Row,>({ row, selection, label }: SelectBoxProps<Row>) =>
  selection.isAble(row) ? (
    <label className="select-box">
      <input type="checkbox" checked={selection.has(row)} onChange={() => selection.toggle(row)} />
      <span className="sr-only">{label}</span>
    </label>
  ) : null

type SelectionBarProps<Row, Act extends string> = {
  selection: Selection<Row>
  words: { title: string; all: string; clear: string; selected: (n: number) => string; most: (n: number) => string }
  /** The commands, each with the look of its button. */
  acts: Record<Act, string>
  labels: Record<Act, string>
  dialog: (open: { rows: Row[]; act: Act; close: () => void }) => React.ReactNode
}

/** The number of selected rows, and the commands on them. An open dialog keeps the rows it opened with. */
export const SelectionBar = <Row, Act extends string>({
  selection: { on, chosen, all, clear },
  words,
  acts,
  labels,
  dialog,
}: SelectionBarProps<Row, Act>) => {
  const [open, setOpen] = useState<{ rows: Row[]; act: Act }>()
  const close = () => {
    setOpen(undefined)
    clear()
  }
  const { length } = chosen
  return (
    <>
      {on ? (
        <section aria-label={words.title} className="flex flex-wrap items-center gap-3">
          <p role="status" className="text-muted empty:-mr-3">
            {length === 0 ? null : length >= MOST ? words.most(length) : words.selected(length)}
          </p>
          <button type="button" className="button quiet" onClick={length > 0 ? clear : all}>
            {length > 0 ? words.clear : words.all}
          </button>
          {length === 0
            ? null
            : (Object.keys(acts) as Act[]).map((act) => (
                <button
                  key={act}
                  type="button"
                  className={`button ${acts[act]}`}
                  onClick={() => setOpen({ rows: chosen, act })}
                >
                  {labels[act]}
                </button>
              ))}
        </section>
      ) : null}
      {open ? <Suspense fallback={null}>{dialog({ ...open, close })}</Suspense> : null}
    </>
  )
}
