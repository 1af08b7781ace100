import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { SearchField } from '../forms/search.tsx'
import { Filter } from '../forms/select.tsx'
import { meQuery } from '../queries/me.ts'
import type { OperationsSearch } from '../queries/operations.ts'
import type { OverviewWhere } from '../queries/overview.ts'
import { rowsOf, useAllPages } from '../queries/pages.ts'
import { placesQuery } from '../queries/topology.ts'
import { tOverview } from '../words/overview.ts'

/** Narrows the overview to the operations of an environment, and to those with a target in a region. */
export const Where = ({ where: { env = '', region = '' } }: { where: OverviewWhere }) => {
  const navigate = useNavigate({ from: '/overview' })
  const may = useQuery(meQuery()).data?.permissions.includes('catalog:read') ?? false
  const places = useInfiniteQuery({ ...placesQuery('regions', {}), enabled: may })
  useAllPages(places)
  const set = (change: OverviewWhere, replace = false) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace })
  const regions = new Map(
    rowsOf(places).map(({ resource_id, display_name, name }) => [resource_id, display_name || name]),
  )
  // The one in the address stays a choice, whether or not it is known.
  if (region !== '' && !regions.has(region)) regions.set(region, region)
  return (
    <div className="filters">
      <SearchField
        label={tOverview.where.env}
        value={env}
        search={(text, replace) => set({ env: text || undefined }, replace)}
      />
      {regions.size > 0 ? (
        <Filter
          label={tOverview.where.region}
          choices={[['', tOverview.where.any] as const, ...regions]}
          value={region}
          change={(id) => set({ region: id || undefined })}
        />
      ) : null}
    </div>
  )
}

/** A number that links to the list behind it, except that of a region, by which the list cannot be narrowed. */
export const InList = ({ find, children }: { find: OperationsSearch; children: string }) => {
  const { env, region } = useSearch({ from: '/shell/overview' })
  return region ? (
    children
  ) : (
    <Link to="/operations" search={{ ...find, ...(env && { env }) }}>
      {children}
    </Link>
  )
}
