import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { Suspense, useEffect, useMemo, useRef, useState } from 'react'
import type { InboxRow } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { inboxQuery, meQuery, waitingQuery } from '../queries/me.ts'
import { rowsOf } from '../queries/pages.ts'
import { Failure } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Empty, Heading, Page } from '../ui/page.tsx'
import { Listing } from '../ui/table.tsx'
import { tDecide } from '../words/decide.ts'
import { ballotOf, keyOf, patchBallot } from './bulk/alike.ts'
import { GateCard } from './card.tsx'
import { Guide } from './guide.tsx'
import { type Selection, useSelection } from './selection.tsx'
import { lineKey, linesOf, type Seen, useHeld, useSteady } from './steady.ts'
import { WaitingRows } from './waiting.tsx'

const AfterRows = lazyPart(() => import('../briefs/peek.tsx').then((part) => ({ default: part.AfterRows })))

const SelectionBar = lazyPart(() => import('./bulk/bar.tsx').then((part) => ({ default: part.SelectionBar })))
const Besides = lazyPart(() => import('./unreached.tsx').then((part) => ({ default: part.Besides })))

const LongCards = lazyPart(() => import('./long.tsx').then((part) => ({ default: part.LongCards<Seen<InboxRow>> })))
/** Above as many, only the cards near the view are drawn. */
const MOST_CARDS = 100

/** What waits for a person: failures and patches as lines, then a card for each gate by deadline. */
export const InboxPage = () => {
  const whose = useSearch({ from: '/shell/inbox' }).for
  const inbox = useInfiniteQuery(inboxQuery(whose))
  const counts = useQuery(meQuery()).data?.counts
  const waiting = useQuery(waitingQuery(whose))
  const { lines: upper, cards, watch } = useHeld()
  const pages = inbox.data
  const gates = useSteady(
    useMemo(() => pages && rowsOf({ data: pages }), [pages]),
    keyOf,
    { of: whose, ...cards },
  )
  const lines = useSteady(
    useMemo(() => waiting.data && linesOf(waiting.data), [waiting.data]),
    lineKey,
    { of: whose, ...upper },
  )
  const selection = useSelection([
    ...lines.rows.flatMap(({ row, gone }) => (gone || !('patch_id' in row) ? [] : [patchBallot(row)])),
    ...gates.rows.flatMap(({ row, gone }) => (gone ? [] : [ballotOf(row)])),
  ])
  const news = gates.news + lines.news
  // Where the rows would be says so, and what waits for others.
  const empty = inbox.isSuccess && waiting.isSuccess && [...lines.rows, ...gates.rows].every(({ gone }) => gone)
  return (
    <Page>
      <div className="flex flex-wrap items-end justify-between gap-3">
        <div>
          <Heading title={tDecide.inbox.title}>{tDecide.inbox.title}</Heading>
          <p className={empty ? 'sr-only' : 'text-muted'} aria-live="polite">
            {counts ? tDecide.inbox.sentence(counts, lines.rows.length > 0) : ' '}
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
      <Guide />
      {waiting.isError ? <Failure error={waiting.error} retry={() => void waiting.refetch()} /> : null}
      <div className="flex min-h-8 flex-wrap items-center gap-x-6 gap-y-2">
        {usePainted(!inbox.isPending) ? (
          <Suspense fallback={null}>
            <AfterRows />
            <SelectionBar selection={selection} />
            <Besides />
          </Suspense>
        ) : null}
      </div>
      <div className="flex flex-col gap-4" {...watch}>
        <div className="news" role="status">
          {news > 0 ? (
            <Button
              look="main"
              onClick={() => {
                gates.take()
                lines.take()
              }}
              word={tDecide.inbox.news(news)}
            />
          ) : null}
        </div>
        <WaitingRows rows={lines.rows} selection={selection} />
        <Listing list={inbox} empty={undefined} cards>
          {gates.rows.length > 0 ? <Cards rows={gates.rows} selection={selection} /> : null}
        </Listing>
      </div>
      {empty ? (
        <div className="card">
          <Empty next={<Elsewhere whose={whose} others={counts?.gates_all ?? 0} />}>
            {whose === 'me' ? tDecide.inbox.empty : tDecide.inbox.empty_all}
          </Empty>
        </div>
      ) : null}
    </Page>
  )
}

/** The cards as a list; a long one is drawn in part, as high as the cards are that were drawn before. */
const Cards = ({ rows, selection }: { rows: Seen<InboxRow>[]; selection: Selection }) => {
  const list = useRef<HTMLUListElement>(null)
  const height_px = useRef(CARD_PX)
  const draw = (seen: Seen<InboxRow>) => <GateCard key={keyOf(seen.row)} {...seen} selection={selection} />
  useEffect(() => {
    if (list.current) height_px.current = list.current.offsetHeight / list.current.childElementCount
  })
  const plain = (
    <ul ref={list} className="flex flex-col">
      {rows.map((seen) => (
        <li key={keyOf(seen.row)} className="pb-3">
          {draw(seen)}
        </li>
      ))}
    </ul>
  )
  if (rows.length <= MOST_CARDS) return plain
  return (
    <Suspense fallback={plain}>
      <LongCards rows={rows} height_px={height_px.current} draw={draw} />
    </Suspense>
  )
}
const CARD_PX = 160

/** Whether what was ready has been on the screen. */
function usePainted(ready: boolean): boolean {
  const [painted, setPainted] = useState(false)
  useEffect(() => {
    if (!ready) return
    const timer = setTimeout(() => setPainted(true), AFTER_PAINT_MS)
    return () => clearTimeout(timer)
  }, [ready])
  return painted
}
const AFTER_PAINT_MS = 100

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
