import { infiniteQueryOptions } from '@tanstack/react-query'
import { pagesOf, reading } from '../api/read.ts'

/** Reads of the evidence and artifacts of an operation. The key's first word is the noun; live frames find the cached reply by it. */
const EVIDENCE_PAGE = 200

/** The records of the chain in order. */
export const evidenceQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['evidence', operation_id],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      reading('/v1/operations/{operation_id}/evidence', {
        path: { operation_id },
        query: { after_seq: pageParam, limit: EVIDENCE_PAGE },
      })({ signal }),
    getNextPageParam: ({ records }) => (records.length < EVIDENCE_PAGE ? undefined : records.at(-1)?.seq),
  })

export const artifactsQuery = (operation_id: string) =>
  pagesOf(['artifacts', operation_id], '/v1/operations/{operation_id}/artifacts', {
    path: { operation_id },
    query: { page_size: 100 },
  })
