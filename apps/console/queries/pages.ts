import { useEffect } from 'react'

export type Rows<Row> = { data: { pages: { items: Row[] }[] } | { items: Row[] } | undefined }

/** The rows of a list, or of all its loaded pages. */
export const rowsOf = <Row>({ data }: Rows<Row>): Row[] => {
  if (data === undefined) return []
  return 'pages' in data ? data.pages.flatMap(({ items }) => items) : data.items
}

/**
 * Reads page after page until the list is complete or a page cannot be read. It does not look at `isFetchNextPageError`,
 * which is false again as soon as a refetch begins: the page that failed would cancel the refetch, without end.
 */
export function useAllPages(list: {
  hasNextPage: boolean
  isFetching: boolean
  isError: boolean
  fetchNextPage: () => unknown
}): void {
  const { hasNextPage, isFetching, isError, fetchNextPage } = list
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) fetchNextPage()
  }, [hasNextPage, isFetching, isError, fetchNextPage])
}
