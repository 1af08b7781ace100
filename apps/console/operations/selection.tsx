import { useQuery } from '@tanstack/react-query'
import { Suspense, useState } from 'react'
import type { OperationRow } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { display } from '../kit/prefs.ts'
import { meQuery } from '../queries/me.ts'
import { lazyPart } from '../ui/lazy.ts'
import { tOperation } from '../words/operation.ts'
import type { OperationCommand } from './effects.tsx'

const BulkDialog = lazyPart(() => import('./bulk-dialog.tsx').then((part) => ({ default: part.BulkDialog })))
const words = tOperation.operations.bulk
/** How many operations may be selected: each needs a dry run and a command. */
const MOST = 20
const COMMANDS: OperationCommand[] = ['pause', 'resume', 'cancel']

/** The selected operations among those that have not ended; off for people who may control none. */
export const useSelection = (rows: readonly OperationRow[]) => {
  const may = useQuery(meQuery()).data?.permissions.includes('operation:control') ?? false
  const [ids, setIds] = useState<readonly string[]>([])
  const able = may ? rows.filter(({ ended_at }) => ended_at === null) : []
  const chosen = able.filter(({ operation_id }) => ids.includes(operation_id))
  const toggle = (id: string) =>
    setIds((before) =>
      before.includes(id) ? before.filter((other) => other !== id) : chosen.length < MOST ? [...before, id] : before,
    )
  return {
    on: able.length > 0,
    chosen,
    isAble: ({ ended_at }: OperationRow) => may && ended_at === null,
    has: (id: string) => ids.includes(id),
    toggle,
    all: () => setIds(able.slice(0, MOST).map(({ operation_id }) => operation_id)),
    clear: () => setIds([]),
  }
}
export type Selection = ReturnType<typeof useSelection>

/** `x` on a row's link selects or deselects it. */
export const selectByKey =
  (row: OperationRow, { isAble, toggle }: Selection) =>
  ({ key }: React.KeyboardEvent): void => {
    if (key === 'x' && display().shortcuts && isAble(row)) toggle(row.operation_id)
  }

/** The checkbox that selects an operation. */
export const SelectBox = ({ row, selection }: { row: OperationRow; selection: Selection }) =>
  selection.isAble(row) ? (
    <label className="select-box">
      <input
        type="checkbox"
        checked={selection.has(row.operation_id)}
        onChange={() => selection.toggle(row.operation_id)}
      />
      <span className="sr-only">{words.select(row.title)}</span>
    </label>
  ) : null

/** The number of selected operations, and the commands on them. An open dialog keeps the operations it opened with. */
export const SelectionBar = ({ selection: { on, chosen, all, clear } }: { selection: Selection }) => {
  const [open, setOpen] = useState<{ rows: OperationRow[]; command: OperationCommand }>()
  const close = () => {
    setOpen(undefined)
    clear()
  }
  return (
    <>
      {on ? (
        <section aria-label={words.title} className="flex flex-wrap items-center gap-3">
          <p role="status" className="text-muted empty:-mr-3">
            {chosen.length === 0
              ? null
              : chosen.length >= MOST
                ? words.most(chosen.length)
                : words.selected(chosen.length)}
          </p>
          <Button look="quiet" onClick={chosen.length > 0 ? clear : all}>
            {chosen.length > 0 ? words.clear : words.all}
          </Button>
          {chosen.length === 0
            ? null
            : COMMANDS.map((command) => (
                <Button
                  key={command}
                  look={command === 'cancel' ? 'danger' : ''}
                  onClick={() => setOpen({ rows: chosen, command })}
                  word={words.open[command]}
                />
              ))}
        </section>
      ) : null}
      {open ? (
        <Suspense fallback={null}>
          <BulkDialog {...open} close={close} />
        </Suspense>
      ) : null}
    </>
  )
}
