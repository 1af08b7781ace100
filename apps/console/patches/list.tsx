import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import type { Patch } from '../api/types.ts'
import { actionOf, mayPress } from '../command/allowed.tsx'
import { shortId } from '../kit/format.ts'
import { patchesQuery } from '../queries/changes.ts'
import { operationQuery } from '../queries/operations.ts'
import { rowsOf } from '../queries/pages.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { PatchLink } from '../values/links.tsx'
import { Person } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { countWords } from '../votes/patch-words.ts'
import { tChange } from '../words/change.ts'

/** Every patch of one operation: waiting, applied, rejected. */
export const OperationPatchesPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const list = useInfiniteQuery(patchesQuery(operation_id))
  const operation = useQuery(operationQuery(operation_id)).data
  const propose = operation && mayPress(actionOf(operation, 'propose_patch'))
  return (
    <ListTable
      list={list}
      empty={`${tChange.patch.empty} ${tChange.patch.what_it_is}`}
      next={
        propose ? (
          <Link to="/operations/$operation_id/patches/new" params={{ operation_id }} className="button">
            {tChange.patch.propose}
          </Link>
        ) : null
      }
      caption={tChange.patch.caption}
      columns={COLUMNS}
      rows={rowsOf(list).toReversed()}
      keyOf="patch_id"
    />
  )
}

const COLUMNS: Column<Patch>[] = [
  {
    name: tChange.patch.columns.patch,
    kind: 'lead',
    cell: ({ operation_id, patch_id, reason }) => (
      <PatchLink operation_id={operation_id} patch_id={patch_id} data-row="" className="font-medium wrap-anywhere">
        {reason}
      </PatchLink>
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
