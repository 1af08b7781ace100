import { useEffect } from 'react'

/** Options of lists that are read page by page: the first page, and the token of the next one. */
export const PAGED = {
  initialPageParam: '',
  getNextPageParam: (last: { next_page_token?: string | null }) => last.next_page_token || undefined,
}

/** The rows of all pages that are loaded. */
export const rowsOf = <Row>({ data }: { data: { pages: { items: Row[] }[] } | undefined }): Row[] =>
  data?.pages.flatMap(({ items }) => items) ?? []

/** The requested page; the first has no token. */
export const pageOf = (token: string): { page_token?: string } => (token === '' ? {} : { page_token: token })

/** Reads page after page until the list is whole. */
export function useAllPages(list: {
  hasNextPage: boolean
  isFetchingNextPage: boolean
  fetchNextPage: () => unknown
}): void {
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
}
