/** Of lists that are read page by page: where they begin, and the token of what follows a page. */
export const PAGED = {
  initialPageParam: '',
  getNextPageParam: (last: { next_page_token?: string | null }) => last.next_page_token || undefined,
}

/** The page that is asked for; the first has no token. */
export const pageOf = (token: string): { page_token?: string } => (token === '' ? {} : { page_token: token })
