import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { Shape, Tone } from '../../shared/contracts/client/status.ts'
import { useTopic } from '../api/hooks.ts'
import { queryOf } from '../api/read.ts'
import type { PlatformHealth, ResourceRow } from '../api/types.ts'
import { meQuery } from '../queries/me.ts'
import { resourcesQuery } from '../queries/resources.ts'
import { Failure } from '../ui/failure.tsx'
import { Heading, Loading, Page } from '../ui/page.tsx'
import { type Column, DataTable, ListTable } from '../ui/table.tsx'
import { Behind } from '../values/behind.tsx'
import { Health, ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tAudit } from '../words/audit.ts'
import { tCatalog } from '../words/catalog.ts'
import { NAME, PLACE } from './columns.tsx'

/** Unhealthy resources, worst first, and the platform's processes for engineers. */
export const HealthPage = () => {
  useTopic('resources')
  const list = useInfiniteQuery(resourcesQuery({ health: ['unhealthy', 'degraded'], sort: '-health_status' }))
  // Checks the permission, not the role, to avoid a request that would be refused.
  const mayReadParts = useQuery(meQuery()).data?.permissions.includes('platform:read') ?? false
  return (
    <Page>
      <Heading title={tAudit.health.title}>{tAudit.health.title}</Heading>
      <section className="flex flex-col gap-3" aria-labelledby="resources">
        <h2 id="resources" className="card-title">
          {tAudit.health.resources}
        </h2>
        <Behind replies={[list.data?.pages[0]]} />
        <ListTable
          list={list}
          empty={tAudit.health.all_well}
          caption={tAudit.health.caption}
          columns={RESOURCES}
          keyOf="resource_id"
        />
      </section>
      {mayReadParts ? <Parts /> : null}
    </Page>
  )
}

type Part = PlatformHealth['parts'][number]

const EVERY_MS = 15_000

/** The last report of each process of the platform, read again while the page is visible. */
const partsQuery = () => queryOf(['platform-health'], '/v1/platform/health', {}, { refetchInterval: EVERY_MS })

const Parts = () => {
  const { data, error, isPending, refetch } = useQuery(partsQuery())
  return (
    <section className="flex flex-col gap-3" aria-labelledby="parts">
      <h2 id="parts" className="card-title">
        {tAudit.health.parts}
      </h2>
      <p className="text-table text-muted">
        {tAudit.health.parts_note} {data ? tAudit.health.as_of : null}{' '}
        {data ? <TimeText at={data.as_of} form="clock" /> : null}
      </p>
      {isPending ? <Loading rows={2} /> : null}
      {data ? (
        <div className="card">
          <DataTable
            caption={tAudit.health.parts_caption}
            columns={PARTS}
            rows={[...data.parts].sort((a, b) => rankOf(a) - rankOf(b))}
            keyOf={({ app, instance }) => `${app} ${instance}`}
          />
        </div>
      ) : isPending ? null : (
        <Failure error={error} retry={() => void refetch()} />
      )}
    </section>
  )
}

const LOOKS: Record<string, [Shape, Tone]> = {
  silent: ['question', 'odd'],
  unready: ['octagon', 'bad'],
  degraded: ['diamond', 'wait'],
  ready: ['check', 'ok'],
}
const rankOf = ({ status }: Part): number => Object.keys(LOOKS).indexOf(status)

/** An event that is still on its way is not a fault. */
const WORTH_SAYING = 0.1

const PARTS: Column<Part>[] = [
  { name: tAudit.health.columns.part, kind: 'lead', className: 'font-medium', cell: ({ app }) => app },
  { name: tAudit.health.columns.instance, className: 'mono', cell: ({ instance }) => instance },
  {
    name: tAudit.health.columns.status,
    cell: ({ status }) => {
      const [shape, tone] = LOOKS[status] ?? ['question', 'odd']
      return (
        <span className="status">
          <ShapeIcon shape={shape} tone={tone} />
          <span>{tAudit.health.status[status] ?? status}</span>
        </span>
      )
    },
  },
  { name: tAudit.health.columns.since, className: 'whitespace-nowrap', cell: ({ since }) => <TimeText at={since} /> },
  {
    name: tAudit.health.columns.not_ready,
    className: 'wrap-anywhere',
    cell: ({ checks }) =>
      Object.entries(checks)
        .filter(([, check]) => (check as { ok?: boolean } | null)?.ok === false)
        .map(([name]) => name)
        .join(', '),
  },
  {
    name: tAudit.health.columns.lags,
    className: 'wrap-anywhere',
    cell: ({ lags }) =>
      Object.entries(lags)
        .filter(([, lag]) => lag >= WORTH_SAYING)
        .map(([name, lag]) => tAudit.health.lag(name, lag))
        .join(', '),
  },
]

const RESOURCES: Column<ResourceRow>[] = [
  NAME,
  { name: tCatalog.resources.health, cell: ({ health_status }) => <Health health={health_status} /> },
  { name: tCatalog.resources.type, className: 'mono', cell: ({ type_key }) => type_key },
  { ...PLACE, name: tAudit.health.place },
]
