import { type Selection, SelectionBar, useSelection } from '../command/selection.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { tDecide } from '../words/decide.ts'
import { type Ballot, keyOf, mayTogether, nounOf, type Together } from './bulk/alike.ts'

const BulkDialog = lazyPart(() => import('./bulk/dialog.tsx').then((part) => ({ default: part.BulkDialog })))
const words = tDecide.inbox.bulk
const VERDICTS: Record<Together, string> = { approve: 'main', reject: 'danger' }

/** Whether the item can be selected at all: its rejection may be allowed in a batch even if its approval is not. */
const isSelectable = (row: Ballot): boolean => mayTogether(row, 'approve') || mayTogether(row, 'reject')

/** Selects items that still wait; off if fewer than two can be selected. */
export const useBallots = (rows: readonly Ballot[]): Selection<Ballot> =>
  useSelection(rows, { keyOf, isAble: isSelectable, least: 2 })

export const BallotsBar = ({ selection }: { selection: Selection<Ballot> }) => {
  const noun = nounOf(selection.chosen)
  return (
    <SelectionBar
      selection={selection}
      words={{ ...words, selected: (n) => words.selected(n, noun), most: (n) => words.most(n, noun) }}
      acts={VERDICTS}
      labels={words.decide}
      dialog={({ act, ...open }) => <BulkDialog {...open} verdict={act} />}
    />
  )
}

/** The label of the checkbox that selects a gate or a patch. */
export const selectLabel = (row: Ballot): string => words.select(row.title, row.operation_title)

/** Why an item that the person may decide cannot be selected. */
export const WhyAlone = ({ row, selection, mine }: { row: Ballot; selection: Selection<Ballot>; mine: boolean }) => {
  const alone = row.alone.reject ?? row.alone.approve
  return selection.on && mine && alone && !isSelectable(row) ? (
    <p className="text-table text-muted">{words.alone[alone]}</p>
  ) : null
}
