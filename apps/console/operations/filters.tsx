import { keepPreviousData } from '@tanstack/react-query'
import { serverNow } from '../api/live.ts'
import { pageOf, pagesOf } from '../api/read.ts'
import type { OperationRow } from '../api/types.ts'
import { SearchField } from '../forms/search.tsx'
import { Filter } from '../forms/select.tsx'
import type { OperationsSearch, OperationsTab } from '../queries/operations.ts'
import { tOperation } from '../words/operation.ts'

const TABS: Record<OperationsTab, { status_group?: 'open' | 'needs_attention'; status?: OperationRow['status'][] }> = {
  running: { status_group: 'open' },
  waiting: { status_group: 'needs_attention' },
  failed: { status: ['failed', 'timed_out'] },
  all: {},
  succeeded: { status: ['succeeded', 'succeeded_with_exceptions'] },
  cancelled: { status: ['cancelled'] },
}
const DAYS: Record<string, number> = { day: 1, week: 7, month: 30 }
const DAY_MS = 86_400_000

/** The moment that a choice of age means, kept while the choice lasts: a page token belongs to one moment. */
export const sinceOf = (age: string | undefined): string | undefined => {
  const days = DAYS[age ?? '']
  return days === undefined ? undefined : new Date(serverNow() - days * DAY_MS).toISOString()
}

/** The search in the API's words. */
const wantedOf = ({ tab, q, from, to, kind, by, on, env }: OperationsSearch, since: string | undefined) => ({
  sort: '-created_at' as const,
  ...TABS[tab],
  ...(q && { q }),
  ...(from && { ended_after: from }),
  ...(to && { ended_before: to }),
  ...(kind && { kind }),
  ...(by && { requester: by }),
  ...(on && { resource_id: on }),
  ...(env && { environment: env }),
  ...(since && { created_after: since }),
})

export const operationsQuery = (find: OperationsSearch, since: string | undefined) =>
  pagesOf(
    ['operations', find, since],
    '/v1/operations',
    { query: { page_size: 50, ...wantedOf(find, since) } },
    { placeholderData: keepPreviousData },
  )
export const operationsPage = (find: OperationsSearch, since: string | undefined) =>
  pageOf('/v1/operations', wantedOf(find, since))

/** Whether anything but the tab narrows the list. */
export const isNarrowed = ({ tab: _, ...filters }: OperationsSearch): boolean => Object.values(filters).some(Boolean)

type Change = Partial<Pick<OperationsSearch, 'kind' | 'by' | 'on' | 'env' | 'age'>>
type FiltersProps = {
  find: OperationsSearch
  rows: readonly OperationRow[]
  set: (change: Change, replace?: boolean) => void
}

/** Filters besides tab and words; fields offer the names that the list shows. */
export const OperationFilters = ({ find, rows, set }: FiltersProps) => {
  const words = tOperation.operations.filters
  const any = ['', words.any] as const
  const distinct = (names: (string | null)[]) => [...new Set(names.flatMap((name) => name ?? []))].sort()
  return (
    <div className="filters">
      <Filter
        label={words.kind}
        choices={[any, ...Object.entries(words.kinds)]}
        value={find.kind ?? ''}
        change={(kind) => set({ kind })}
      />
      <Filter
        label={words.age}
        choices={[any, ...Object.entries(words.ages)]}
        value={find.age ?? ''}
        change={(age) => set({ age })}
      />
      <SearchField
        label={words.by}
        value={find.by ?? ''}
        choices={['me', ...distinct(rows.map(({ requester }) => requester.name))]}
        search={(by, replace) => set({ by }, replace)}
      />
      <SearchField
        label={words.env}
        value={find.env ?? ''}
        choices={distinct(rows.map(({ environment }) => environment))}
        search={(env, replace) => set({ env }, replace)}
      />
      <SearchField label={words.on} value={find.on ?? ''} search={(on, replace) => set({ on }, replace)} />
    </div>
  )
}
