/** Options of lists that are read page by page: the first page, and the token of the next one. */
export const PAGED = {
  initialPageParam: '',
  getNextPageParam: (last: { next_page_token?: string | null }) => last.next_page_token || undefined,
}

/** The requested page; the first has no token. */
export const pageOf = (token: string): { page_token?: string } => (token === '' ? {} : { page_token: token })
