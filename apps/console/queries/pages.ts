import { useEffect } from 'react'

/** The rows of all loaded pages. */
export const rowsOf = <Row>({ data }: { data: { pages: { items: Row[] }[] } | undefined }): Row[] =>
  data?.pages.flatMap(({ items }) => items) ?? []

/** Reads page after page until the list is complete or a page cannot be read. */
export function useAllPages(list: {
  hasNextPage: boolean
  isFetchingNextPage: boolean
  isFetchNextPageError: boolean
  fetchNextPage: () => unknown
}): void {
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage])
}
