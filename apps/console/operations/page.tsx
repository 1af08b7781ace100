import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useParams } from '@tanstack/react-router'
import { ExternalLink } from 'lucide-react'
import { useTopic } from '../api/hooks.ts'
import type { Operation } from '../api/types.ts'
import { coarse, shortId } from '../kit/format.ts'
import { operationQuery } from '../queries/operations.ts'
import { CopyButton } from '../ui/copy.tsx'
import { Failure, isRefusal, readOf, UnreadPage } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { ProgressBar } from '../ui/progress.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { OperationLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { OperationStatusMark } from '../values/status.tsx'
import { Ticket } from '../values/ticket.tsx'
import { DurationText, TimeText, useNow } from '../values/time.tsx'
import { tOperation } from '../words/operation.ts'
import { OperationActions } from './actions.tsx'
import { OperationSentence } from './sentence.tsx'

const WAITS_AGE_MS = 30_000
const TABS = ['graph', 'nodes', 'timeline', 'patches', 'artifacts', 'evidence', 'activity'] as const

/** The header of every view of one operation: its state, whether it waits for this person, and their actions. */
export const OperationPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  useTopic(`operation:${operation_id}`)
  const query = useQuery({
    ...operationQuery(operation_id),
    // No frame of this operation tells that another one has freed its leases.
    refetchInterval: ({ state }) =>
      state.data?.blocked_on.some(({ kind }) => kind === 'lease') ? WAITS_AGE_MS : false,
  })
  const operation = readOf(query)
  const title = tOperation.operations.operation
  const heading = `${title} ${shortId(operation_id)}`
  // A server fault replaces the head of the page; the views below read on their own.
  const fault = query.isError && !isRefusal(query.error)
  if (operation === undefined && !fault)
    return <UnreadPage title={title} heading={heading} query={query} noun="operation" />
  return (
    <Page wide>
      {operation ? (
        <Head operation={operation} />
      ) : (
        <>
          <Heading title={title}>{heading}</Heading>
          <Failure error={query.error} retry={() => void query.refetch()} />
        </>
      )}
      <Tabs label={tOperation.operation.tabs_label}>
        {TABS.map((tab) => (
          <Link
            key={tab}
            to={`/operations/$operation_id/${tab}`}
            params={{ operation_id }}
            activeOptions={{ includeSearch: false }}
          >
            {tOperation.operation.tabs[tab]}
            {tab === 'patches' && operation?.open_patches.length ? ` (${operation.open_patches.length})` : ''}
          </Link>
        ))}
      </Tabs>
      <Outlet />
    </Page>
  )
}

const Head = ({ operation }: { operation: Operation }) => (
  <header className="flex flex-col gap-3">
    <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="flex min-w-0 flex-1 basis-80 flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <Heading title={operation.title}>{operation.title}</Heading>
          <OperationStatusMark status={operation.status} blockedOn={operation.blocked_on} badge />
        </div>
        <OperationSentence operation={operation} />
      </div>
      <OperationActions operation={operation} />
    </div>
    <Facts operation={operation} />
  </header>
)

const Facts = ({ operation }: { operation: Operation }) => {
  const now = useNow()
  const left = operation.eta_at && operation.status === 'running' ? Date.parse(operation.eta_at) - now : 0
  return (
    <div className="flex flex-wrap items-center gap-x-6 gap-y-2 text-table text-muted">
      <div className="w-44 text-text">
        <ProgressBar progress={operation.progress} status={operation.status} blockedOn={operation.blocked_on} />
      </div>
      {left > 0 ? <span>{tOperation.operation.eta(coarse(left))}</span> : null}
      <span>{tOperation.operation.requested(nameOf(operation.requester))}</span>
      {operation.ticket === null ? null : <Ticket ticket={operation.ticket} />}
      {operation.retry_of ? (
        <span>
          {tOperation.operation.repeats}{' '}
          <OperationLink id={operation.retry_of}>
            <code>{shortId(operation.retry_of)}</code>
          </OperationLink>
        </span>
      ) : null}
      {operation.started_at ? (
        <span>
          {tOperation.operations.started} <TimeText at={operation.started_at} form="both" />
        </span>
      ) : null}
      {operation.started_at ? (
        <span>
          {tOperation.operations.duration} <DurationText from={operation.started_at} to={operation.ended_at} />
        </span>
      ) : null}
      <Link
        to="/plans/$plan_id"
        params={{ plan_id: operation.plan_id }}
        search={{ tab: 'changes' }}
        className="inline-flex min-h-6 items-center"
      >
        {tOperation.operation.plan}
      </Link>
      <span className="flex items-center gap-1">
        {tOperation.event_nouns.operation} <code title={operation.operation_id}>{shortId(operation.operation_id)}</code>
        <CopyButton text={operation.operation_id} />
      </span>
      <EngineLink operation={operation} />
    </div>
  )
}

/** The link to the Temporal UI, if the server sent the reference; http(s) only. */
const EngineLink = ({ operation }: { operation: Operation }) => {
  const ref = operation.engine_ref
  if (ref === undefined || !/^https?:\/\//.test(ref.ui_url)) return null
  return (
    <a href={ref.ui_url} target="_blank" rel="noopener noreferrer" className="inline-flex min-h-6 items-center gap-1">
      {tOperation.operation.engine}
      <ExternalLink size={14} aria-hidden="true" />
    </a>
  )
}
