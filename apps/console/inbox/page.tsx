import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { Suspense, useEffect, useMemo, useRef, useState } from 'react'
import type { InboxRow } from '../api/types.ts'
import { inboxQuery, meQuery, waitingQuery } from '../queries/me.ts'
import { rowsOf } from '../queries/pages.ts'
import { Failure } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Empty, Heading, Page } from '../ui/page.tsx'
import { Listing } from '../ui/table.tsx'
import { tDecide } from '../words/decide.ts'
import { ballotOf, keyOf, patchBallot } from './alike.ts'
import { Decided, GateCard } from './card.tsx'
import { Guide } from './guide.tsx'
import { type Selection, SelectionBar, useSelection } from './selection.tsx'
import { isEmpty, WaitingRows } from './waiting.tsx'

/** Saved views load after the rows, because they are not urgent. */
const ViewsRow = lazyPart(() => import('../views/row.tsx').then((part) => ({ default: part.ViewsRow })))

const LongCards = lazyPart(() => import('./long.tsx').then((part) => ({ default: part.LongCards<Seen> })))
/** Above as many, only the cards near the view are drawn. */
const MOST_CARDS = 100

/** What waits for a person: failures and patches as lines, then a card for each gate by deadline. */
export const InboxPage = () => {
  const whose = useSearch({ from: '/shell/inbox' }).for
  const inbox = useInfiniteQuery(inboxQuery(whose))
  const counts = useQuery(meQuery()).data?.counts
  const waiting = useQuery(waitingQuery(whose))
  const rows = useStaying(inbox.data, whose)
  const selection = useSelection([
    ...(waiting.data?.patches ?? []).map(patchBallot),
    ...rows.flatMap(({ row, gone }) => (gone ? [] : [ballotOf(row)])),
  ])
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
      <div className="min-h-8">
        {usePainted(!inbox.isPending) ? (
          <Suspense fallback={null}>
            <ViewsRow list="inbox" />
          </Suspense>
        ) : null}
      </div>
      <Guide />
      {waiting.isError ? <Failure error={waiting.error} retry={() => void waiting.refetch()} /> : null}
      <SelectionBar selection={selection} />
      <WaitingRows waiting={waiting.data} selection={selection} />
      <Listing list={inbox} empty={undefined} cards>
        {rows.length > 0 ? <Cards rows={rows} selection={selection} /> : null}
      </Listing>
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

/** The cards as a list; a long one is drawn in part, as high as the cards are that were drawn before. */
const Cards = ({ rows, selection }: { rows: Seen[]; selection: Selection }) => {
  const list = useRef<HTMLUListElement>(null)
  const height_px = useRef(CARD_PX)
  const draw = ({ row, gone }: Seen) =>
    gone ? <Decided key={keyOf(row)} row={row} /> : <GateCard key={keyOf(row)} row={row} selection={selection} />
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

type Seen = { row: InboxRow; gone: boolean }

/** Keeps the cards that leave the list while the page is open, so that no card vanishes while someone reads it. */
function useStaying(data: Parameters<typeof rowsOf<InboxRow>>[0]['data'], whose: string): Seen[] {
  const items = useMemo(() => data && rowsOf({ data }), [data])
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
