import { useState } from 'react'
import { display } from '../kit/prefs.ts'
import { tDecide } from '../words/decide.ts'
import { type Ballot, flipped, keyOf, MOST, mayTogether } from './bulk/alike.ts'

const words = tDecide.inbox.bulk

/** Whether the item can be selected at all: its rejection may be allowed in a batch even if its approval is not. */
const isSelectable = (row: Ballot): boolean => mayTogether(row, 'approve') || mayTogether(row, 'reject')

/** The selected items among those that still wait. Selection is off if fewer than two can be selected. */
export const useSelection = (rows: readonly Ballot[]) => {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set())
  const able = rows.filter(isSelectable)
  const chosen = able.filter((row) => keys.has(keyOf(row)))
  const toggle = (row: Ballot) =>
    setKeys((before) => (before.has(keyOf(row)) || chosen.length < MOST ? flipped(before, keyOf(row)) : before))
  return {
    on: able.length > 1,
    chosen,
    has: (row: Ballot) => keys.has(keyOf(row)),
    toggle,
    all: () => setKeys(new Set(able.slice(0, MOST).map(keyOf))),
    clear: () => setKeys(new Set()),
  }
}
export type Selection = ReturnType<typeof useSelection>

/** `x` on a row's link selects or deselects it. */
export const selectByKey =
  (row: Ballot, { on, toggle }: Selection) =>
  ({ key }: React.KeyboardEvent): void => {
    if (key === 'x' && display().shortcuts && on && isSelectable(row)) toggle(row)
  }

/** The checkbox that selects a gate or a patch. */
export const SelectBox = ({ row, selection }: { row: Ballot; selection: Selection }) =>
  selection.on && isSelectable(row) ? (
    <label className="select-box">
      <input type="checkbox" checked={selection.has(row)} onChange={() => selection.toggle(row)} />
      <span className="sr-only">{words.select(row.title, row.operation_title)}</span>
    </label>
  ) : null

/** Why an item that the person may decide cannot be selected. */
export const WhyAlone = ({ row, selection, mine }: { row: Ballot; selection: Selection; mine: boolean }) => {
  const alone = row.alone.reject ?? row.alone.approve
  return selection.on && mine && alone && !isSelectable(row) ? (
    <p className="text-table text-muted">{words.alone[alone]}</p>
  ) : null
}
