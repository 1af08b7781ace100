import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import type { InboxRow } from '../api/types.ts'
import { inboxQuery, meQuery, waitingQuery } from '../queries/me.ts'
import { gateQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { Empty, Heading, Loading, Page } from '../ui/page.tsx'
import { GateLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { ShapeIcon, Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { ViewsRow } from '../views/row.tsx'
import { ruleOf, ruleWords, votesInRound } from '../votes/votes.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { Guide } from './guide.tsx'
import { isEmpty, WaitingRows } from './waiting.tsx'

/** What waits for a person: failures and patches as lines, then a card for each gate by deadline. */
export const InboxPage = () => {
  const whose = useSearch({ from: '/shell/inbox' }).for
  const inbox = useQuery(inboxQuery(whose))
  const counts = useQuery(meQuery()).data?.counts
  const waiting = useQuery(waitingQuery(whose))
  const rows = useStaying(inbox.data?.items, whose)
  return (
    <Page>
      <div className="flex flex-wrap items-end justify-between gap-3">
        <div>
          <Heading title={tDecide.inbox.title}>{tDecide.inbox.title}</Heading>
          <p className="text-muted" aria-live="polite">
            {counts ? tDecide.inbox.sentence(counts) : ' '}
          </p>
        </div>
        <nav className="choices" aria-label={tDecide.inbox.filter}>
          {(['me', 'all'] as const).map((choice) => (
            <Link
              key={choice}
              to="/inbox"
              search={{ for: choice }}
              aria-current={choice === whose ? 'page' : undefined}
            >
              {choice === 'me' ? tDecide.inbox.mine : tDecide.inbox.all}
            </Link>
          ))}
        </nav>
      </div>
      <ViewsRow list="inbox" />
      <Guide />
      {inbox.isPending ? <Loading rows={2} /> : null}
      {inbox.isError ? <Failure error={inbox.error} retry={() => void inbox.refetch()} /> : null}
      <WaitingRows waiting={waiting.data} />
      {rows.length > 0 ? (
        <ul className="flex flex-col gap-3">
          {rows.map(({ row, gone }) => (
            <li key={keyOf(row)}>{gone ? <Decided row={row} /> : <Card row={row} />}</li>
          ))}
        </ul>
      ) : null}
      {inbox.isSuccess && waiting.isSuccess && isEmpty(waiting.data) && rows.every(({ gone }) => gone) ? (
        <div className="card">
          <Empty next={<Elsewhere whose={whose} others={counts?.gates_all ?? 0} />}>
            {whose === 'me' ? tDecide.inbox.empty : tDecide.inbox.empty_all}
          </Empty>
        </div>
      ) : null}
    </Page>
  )
}

const Elsewhere = ({ whose, others }: { whose: 'me' | 'all'; others: number }) =>
  whose === 'me' && others > 0 ? (
    <Link to="/inbox" search={{ for: 'all' }}>
      {tDecide.inbox.see_others(others)}
    </Link>
  ) : (
    <Link to="/operations" search={{ tab: 'running', q: '' }} className="button">
      {tDecide.inbox.see_operations}
    </Link>
  )

const Card = ({ row }: { row: InboxRow }) => {
  const rule = ruleOf(row)
  const { operation_id, gate_id } = row
  return (
    <article className="card gate-card flex flex-col gap-3 p-4">
      <div className="flex items-start gap-3">
        <span className="mt-1">
          <ShapeIcon shape="diamond" tone="wait" />
        </span>
        <div className="min-w-0 flex-1">
          <h2 className="text-title font-semibold wrap-anywhere">
            <GateLink operation_id={operation_id} gate_id={gate_id} data-row="" className="card-link">
              {row.question}
            </GateLink>
          </h2>
          <p className="text-muted wrap-anywhere">{row.operation_title}</p>
        </div>
        {row.risk ? (
          <span
            className={`badge tone-${row.risk === 'high' || row.risk === 'critical' ? 'bad' : row.risk === 'medium' ? 'wait' : 'idle'}`}
          >
            {tDecide.inbox.risk}: {t.risk[row.risk] ?? row.risk}
          </span>
        ) : null}
      </div>
      <dl className="card-facts">
        <div>
          <dt>{tDecide.inbox.changes}</dt>
          <dd>
            {t.change_counts({
              create: row.change_counts.added,
              update: row.change_counts.changed,
              delete: row.change_counts.removed,
            })}
          </dd>
        </div>
        {row.waiting_since ? (
          <div>
            <dt>{tDecide.inbox.waiting_since}</dt>
            <dd>
              <TimeText at={row.waiting_since} form="both" />
            </dd>
          </div>
        ) : null}
        {row.deadline_at ? (
          <div>
            <dt>{tDecide.inbox.expires}</dt>
            <dd>
              <TimeText at={row.deadline_at} />,{' '}
              {tDecide.inbox.and_then(tDecide.gate.timeout[row.on_timeout] ?? row.on_timeout)}
            </dd>
          </div>
        ) : null}
        <div>
          <dt>{tDecide.inbox.votes}</dt>
          <dd>
            {t.of(votesInRound(row).filter((vote) => vote.decision === 'approve').length, rule.quorum)}
            <span className="text-muted"> ({ruleWords(row)})</span>
          </dd>
        </div>
      </dl>
      {row.eligible_me ? null : (
        <p className="text-table text-muted">{row.why_not_me ? row.why_not_me : tDecide.inbox.not_you}</p>
      )}
    </article>
  )
}

/** A gate that left the list while this page was open: one line with its outcome, gone on the next visit. */
const Decided = ({ row }: { row: InboxRow }) => {
  const { operation_id, gate_id } = row
  const gate = useQuery(gateQuery(operation_id, gate_id)).data
  if (gate === undefined || gate.status === 'waiting') return null
  return (
    <div className="card flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-muted">
      <Status state={gate.status} />
      <GateLink operation_id={operation_id} gate_id={gate_id}>
        {row.question}
      </GateLink>
      <span>{row.operation_title}</span>
      {gate.decided ? (
        <span>
          {nameOf(gate.decided.by)}, <TimeText at={gate.decided.at} />
        </span>
      ) : null}
    </div>
  )
}

type Seen = { row: InboxRow; gone: boolean }

/** Keeps the cards that leave the list while the page is open, so that no card vanishes while it is read. */
function useStaying(items: InboxRow[] | undefined, whose: string): Seen[] {
  const [seen, setSeen] = useState<{ whose: string; rows: Seen[] }>({ whose, rows: [] })
  useEffect(() => {
    if (items === undefined) return
    setSeen((before) => {
      const known = before.whose === whose ? before.rows : []
      const gone = known.filter(({ row }) => !items.some((item) => keyOf(item) === keyOf(row)))
      return {
        whose,
        rows: [...items.map((row) => ({ row, gone: false })), ...gone.map(({ row }) => ({ row, gone: true }))],
      }
    })
  }, [items, whose])
  return seen.whose === whose ? seen.rows : (items ?? []).map((row) => ({ row, gone: false }))
}

const keyOf = (row: InboxRow): string => `${row.operation_id}/${row.gate_id}/${row.round}`
