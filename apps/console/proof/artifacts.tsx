import { useInfiniteQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { rowsOf } from '../queries/pages.ts'
import { artifactsQuery } from '../queries/proof.ts'
import { Listing } from '../ui/table.tsx'
import { tProof } from '../words/proof.ts'
import { ArtifactTable } from './list.tsx'

/** All artifacts of one operation. */
export const OperationArtifactsPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const list = useInfiniteQuery(artifactsQuery(operation_id))
  const rows = rowsOf(list)
  return (
    <Listing list={list} empty={rows.length > 0 ? undefined : tProof.artifacts.empty}>
      <ArtifactTable operation_id={operation_id} rows={rows} />
    </Listing>
  )
}
