import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { meQuery, waitingFor } from '../queries/me.ts'
import { overviewQuery } from '../queries/overview.ts'
import { Card } from '../ui/card.tsx'
import { Unread } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { NewLink } from '../values/links.tsx'
import { tOverview } from '../words/overview.ts'
import { ByGroup, Held, Running } from './now.tsx'
import { Planned } from './planned.tsx'
import { Regions } from './regions.tsx'
import { Trends } from './trends.tsx'
import { InList, Where } from './where.tsx'

const PERIODS = [14, 30, 90] as const

/** Waiting decisions by group, held and running operations, how operations ended, and planned events. */
export const OverviewPage = () => {
  const { days, env, region } = useSearch({ from: '/shell/overview' })
  const where = { env, region }
  const overview = useQuery(overviewQuery(days, where))
  const counts = useQuery(meQuery()).data?.counts
  const { data } = overview
  return (
    <Page>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <Heading title={tOverview.title}>{tOverview.title}</Heading>
        <nav className="choices" aria-label={tOverview.days}>
          {PERIODS.map((choice) => (
            <Link
              key={choice}
              to="/overview"
              search={{ days: choice, ...where }}
              aria-current={choice === days ? 'page' : undefined}
            >
              {tOverview.period[choice]}
            </Link>
          ))}
        </nav>
        <NewLink />
      </div>
      <Where where={where} />
      <Unread query={overview} />
      {data === undefined ? null : (
        <>
          <Card title={tOverview.now}>
            <ul className="flex flex-wrap gap-x-6 gap-y-2 p-4">
              {counts && !env && !region ? (
                <>
                  <li>
                    <Link to="/inbox" search={{ for: 'me' }}>
                      {tOverview.waiting(waitingFor(counts))}
                    </Link>
                  </li>
                  <li>
                    <Link to="/inbox" search={{ for: 'all' }}>
                      {tOverview.waiting_all(counts.gates_all)}
                    </Link>
                  </li>
                </>
              ) : null}
              <li>
                <InList find={{ tab: 'running', q: '' }}>{tOverview.open(data.now.open)}</InList>
              </li>
              <li>
                <InList find={{ tab: 'waiting', q: '' }}>{tOverview.attention(data.now.needs_attention)}</InList>
              </li>
            </ul>
          </Card>
          <ByGroup overview={data} />
          <Held where={where} />
          <Running where={where} />
          <Regions overview={data} />
          <Trends overview={data} />
          <Planned overview={data} />
        </>
      )}
    </Page>
  )
}
