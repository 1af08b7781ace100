import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { shortId } from '../api/format.ts'
import { patchesQuery } from '../api/queries/changes.ts'
import { operationQuery } from '../api/queries/operations.ts'
import type { Patch } from '../api/types.ts'
import { tChange } from '../i18n/change.ts'
import { actionOf, mayPress } from '../parts/allowed-action.tsx'
import { type Column, DataTable, Listing } from '../parts/data-table.tsx'
import { Empty } from '../parts/page.tsx'
import { countWords } from '../parts/patch-words.ts'
import { Person } from '../parts/person.tsx'
import { Status } from '../parts/status.tsx'
import { TimeText } from '../parts/time-text.tsx'

/** Every patch of one operation: what waits, what was applied, what was turned down. */
export const OperationPatchesPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const list = useInfiniteQuery(patchesQuery(operation_id))
  const operation = useQuery(operationQuery(operation_id)).data
  const rows = (list.data?.pages.flatMap((page) => page.items) ?? []).toReversed()
  const propose = operation && mayPress(actionOf(operation, 'propose_patch'))
  return (
    <Listing
      list={list}
      empty={
        rows.length > 0 ? undefined : (
          <Empty
            next={
              propose ? (
                <Link to="/operations/$operation_id/patches/new" params={{ operation_id }} className="button">
                  {tChange.patch.propose}
                </Link>
              ) : null
            }
          >
            {tChange.patch.empty} {tChange.patch.what_it_is}
          </Empty>
        )
      }
    >
      <DataTable caption={tChange.patch.caption} columns={COLUMNS} rows={rows} keyOf={({ patch_id }) => patch_id} />
    </Listing>
  )
}

const COLUMNS: Column<Patch>[] = [
  {
    name: tChange.patch.columns.patch,
    kind: 'lead',
    cell: ({ operation_id, patch_id, reason }) => (
      <Link
        to="/operations/$operation_id/patches/$patch_id"
        params={{ operation_id, patch_id }}
        data-row=""
        className="font-medium wrap-anywhere"
      >
        {reason}
      </Link>
    ),
  },
  { name: tChange.patch.columns.status, cell: ({ status }) => <Status state={status} /> },
  { name: tChange.patch.columns.change, cell: ({ diff_graph }) => countWords(diff_graph) },
  {
    name: tChange.patch.columns.base,
    className: 'whitespace-nowrap tabular-nums',
    cell: ({ base_revision, applied_revision }) => tChange.patch.revisions(base_revision, applied_revision),
  },
  { name: tChange.patch.columns.by, cell: ({ proposer }) => <Person who={proposer} /> },
  {
    name: tChange.patch.columns.at,
    className: 'whitespace-nowrap',
    cell: ({ created_at, patch_id }) => (
      <>
        <TimeText at={created_at} /> <code className="text-muted">{shortId(patch_id)}</code>
      </>
    ),
  },
]
