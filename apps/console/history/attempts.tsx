import type { UseQueryResult } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Graph, TimelineEvent } from '../api/types.ts'
import { Choices } from '../forms/choices.tsx'
import { Card } from '../ui/card.tsx'
import { Failure } from '../ui/failure.tsx'
import { Loading } from '../ui/page.tsx'
import { useNow } from '../values/time.tsx'
import { tOperation } from '../words/operation.ts'
import { asksOf, type Bar, barsOf, pausesOf } from './bars.ts'
import { type Blame, blameOf, type Link, type Piece } from './blame.ts'
import { BlamePanel } from './blame-panel.tsx'
import { Gantt, type GanttRow } from './gantt.tsx'

type Asked = {
  /** The node to explain; by default the last one of the operation. */
  why: string | undefined
  only: 'path' | undefined
  /** The visible time span; by default all of it. */
  viewed: { from?: string | undefined; to?: string | undefined }
  explain: (node_id: string | undefined) => void
  view: (next: Asked['viewed']) => void
  keep: (choice: 'path' | undefined) => void
}
type Props = Asked & {
  operation_id: string
  ended_at: string | null
  graph: UseQueryResult<Graph>
  /** The whole history; empty until it is read. */
  events: readonly TimelineEvent[]
}
const t = tOperation.timeline

/** The critical path, and every attempt and wait as bars. */
export const AttemptsCard = ({ operation_id, ended_at, graph, events, ...asked }: Props) => {
  const clock = useNow()
  const newest = events.reduce((most, { at }) => Math.max(most, Date.parse(at)), 0)
  const now = ended_at === null ? Math.max(clock, newest) : Date.parse(ended_at)
  const history = useMemo(() => historyOf(graph.data, events, now), [graph.data, events, now])
  const { why } = asked
  const blame = history && blameOf(history.graph.nodes, history, why)
  return (
    <>
      {blame ? (
        <BlamePanel
          operation_id={operation_id}
          blame={blame}
          of={why === undefined ? undefined : history.names.get(why)}
          names={{ nodes: history.names, question: (link, piece) => questionOf(history, link, piece) }}
        />
      ) : null}
      <Card
        title={t.gantt}
        note={t.gantt_note}
        aside={
          <Choices
            label={t.rows_label}
            choices={t.rows}
            chosen={asked.only ?? 'all'}
            choose={(choice) => asked.keep(choice === 'path' ? 'path' : undefined)}
          />
        }
      >
        {graph.isError ? <Failure error={graph.error} retry={() => void graph.refetch()} /> : null}
        {history === undefined && !graph.isError ? <Loading rows={2} /> : null}
        {history ? (
          <Gantt
            rows={rowsOf(history, blame, asked)}
            pauses={history.pauses}
            times={history.times}
            now={ended_at === null ? now : undefined}
            viewed={asked.viewed}
            view={asked.view}
          />
        ) : null}
      </Card>
    </>
  )
}

/** The events as bars of nodes, gates and pauses; `undefined` until everything has been read. */
const historyOf = (graph: Graph | undefined, events: readonly TimelineEvent[], now: number) => {
  const [first] = events
  if (graph === undefined || first === undefined) return undefined
  const holding = new Set(graph.nodes.flatMap(({ node_id, on_failure }) => (on_failure === 'hold' ? [node_id] : [])))
  const from = Date.parse(first.at)
  const begin = events.find(({ type }) => type === 'operation.started')
  return {
    graph,
    names: new Map(graph.nodes.map(({ node_id, name }) => [node_id, name])),
    from,
    started: begin ? Date.parse(begin.at) : now,
    now,
    bars: barsOf(events, now, (node_id) => holding.has(node_id)),
    pauses: pausesOf(events, now),
    times: events.map(({ at }) => Date.parse(at)),
    asks: new Map(graph.gates.map(({ gate_id }) => [gate_id, asksOf(events, now, gate_id)])),
  }
}
type History = NonNullable<ReturnType<typeof historyOf>>

/** Pauses and gates first, then nodes in the order in which they began. */
const rowsOf = ({ graph, names, bars, asks, pauses }: History, blame: Blame | undefined, asked: Asked): GanttRow[] => {
  const links = new Map(blame?.links.map((link) => [link.node_id, link]))
  const onPath = (node_id: string) => asked.only !== 'path' || links.has(node_id)
  const begin = (row: GanttRow) => row.bars[0]?.from ?? 0
  const gates = graph.gates
    .filter(({ guards }) => guards.some(onPath))
    .map(({ gate_id, question }) => ({ key: `gate ${gate_id}`, name: t.gate(question), bars: asks.get(gate_id) ?? [] }))
  const nodes = graph.nodes
    .filter(({ node_id }) => onPath(node_id))
    .map(({ node_id }) => ({
      key: node_id,
      name: names.get(node_id) ?? node_id,
      bars: bars.get(node_id) ?? [],
      path: links.get(node_id),
      why: { pressed: asked.why === node_id, press: () => asked.explain(asked.why === node_id ? undefined : node_id) },
    }))
  const shown = (row: GanttRow) => row.bars.length > 0
  return [[{ key: 'pauses', name: t.pauses, bars: pauses }], gates, nodes].flatMap((rows: GanttRow[]) =>
    rows.filter(shown).sort((a, b) => begin(a) - begin(b)),
  )
}

/** The question of the gate that was decided last in this piece. */
const questionOf = ({ graph, asks }: History, link: Link, piece: Piece): string =>
  graph.gates
    .filter(({ guards }) => guards.includes(link.node_id))
    .map(({ gate_id, question }) => ({ question, ask: lastIn(asks.get(gate_id) ?? [], piece) }))
    .reduce((a, b) => ((b.ask?.to ?? 0) > (a.ask?.to ?? 0) ? b : a), { question: '', ask: undefined }).question

const lastIn = (asks: readonly Bar[], { from, to }: Piece): Bar | undefined =>
  asks.findLast((ask) => ask.from <= to && ask.to >= from)
