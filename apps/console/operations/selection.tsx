import { useQuery } from '@tanstack/react-query'
import type { OperationRow } from '../api/types.ts'
import { type Selection, SelectionBar, useSelection } from '../command/selection.tsx'
import { meQuery } from '../queries/me.ts'
import { lazyPart } from '../ui/lazy.ts'
import { tOperation } from '../words/operation.ts'
import type { OperationCommand } from './effects.tsx'

const BulkDialog = lazyPart(() => import('./bulk-dialog.tsx').then((part) => ({ default: part.BulkDialog })))
const words = tOperation.operations.bulk
const COMMANDS: Record<OperationCommand, string> = { pause: '', resume: '', cancel: 'danger' }

/** Selects operations that have not ended; off for people who may control none. */
export const useOperations = (rows: readonly OperationRow[]): Selection<OperationRow> => {
  const may = useQuery(meQuery()).data?.permissions.includes('operation:control') ?? false
  return useSelection(rows, {
    keyOf: ({ operation_id }) => operation_id,
    isAble: ({ ended_at }) => may && ended_at === null,
    least: 1,
  })
}

export const OperationsBar = ({ selection }: { selection: Selection<OperationRow> }) => (
  <SelectionBar
    selection={selection}
    words={words}
    acts={COMMANDS}
    labels={words.open}
    dialog={({ act, ...open }) => <BulkDialog {...open} command={act} />}
  />
)
