import { duration, shown } from '../kit/format.ts'
import type { Column } from '../ui/table.tsx'
import { LongTable } from '../ui/window.tsx'
import { GateLink, NodeLink, PatchLink } from '../values/links.tsx'
import { Person } from '../values/person.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tChange } from '../words/change.ts'
import { quoted } from '../words/frame/language.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { type Entry, eventWords, keyOfLine, triedOf } from './words.ts'

type EventTableProps = { operation_id: string; events: Entry[]; names: ReadonlyMap<string, string>; whole?: boolean }

/** Events with who, what and why; `whole` adds all members of the event and its place in the evidence. */
export const EventTable = ({ operation_id, events, names, whole = false }: EventTableProps) => (
  <LongTable
    caption={tOperation.timeline.caption}
    columns={[...columnsOf(operation_id, names), ...(whole ? FURTHER : [])]}
    rows={events}
    keyOf={keyOfLine}
  />
)

const columnsOf = (operation_id: string, names: ReadonlyMap<string, string>): Column<Entry>[] => [
  {
    name: tOperation.timeline.at,
    className: 'whitespace-nowrap tabular-nums',
    cell: (event) => <TimeText at={event.at} form="clock" />,
  },
  {
    name: tOperation.timeline.event,
    kind: 'lead',
    cell: (event) => (
      <>
        <Words event={event} />
        {event.earlier?.length ? <Earlier earlier={event.earlier} /> : null}
      </>
    ),
  },
  {
    name: tOperation.timeline.about,
    className: 'wrap-anywhere',
    cell: (event) =>
      event.node_id ? (
        <NodeLink operation_id={operation_id} node_id={event.node_id}>
          {names.get(event.node_id) ?? event.node_id}
        </NodeLink>
      ) : event.gate_id ? (
        <GateLink operation_id={operation_id} gate_id={event.gate_id}>
          {names.get(`gate ${event.gate_id}`) ?? event.gate_id}
        </GateLink>
      ) : event.patch_id ? (
        <PatchLink operation_id={operation_id} patch_id={event.patch_id}>
          {tChange.patch.page}
        </PatchLink>
      ) : null,
  },
  { name: tOperation.timeline.who, cell: (event) => <Person who={event.actor} /> },
]

const Words = ({ event }: { event: Entry }) => {
  const { shape, tone, words } = eventWords(event)
  const { attempts, ran_ms } = event.earlier?.length ? triedOf(event) : { attempts: 0, ran_ms: 0 }
  return (
    <span className="flex items-start gap-2">
      <span className="mt-px">
        <ShapeIcon shape={shape} tone={tone} />
      </span>
      <span className="min-w-0 wrap-anywhere">
        {words}
        {attempts > 0 ? `: ${tOperation.timeline.tried(attempts, duration(ran_ms))}` : null}
        {event.reason ? <span className="text-muted">: {quoted(shown(event.reason))}</span> : null}
      </span>
    </span>
  )
}

/** The events that a line stands for, newest first. */
const Earlier = ({ earlier }: { earlier: readonly Entry[] }) => (
  <details>
    <summary className="text-table">{tOperation.timeline.earlier(earlier.length)}</summary>
    <ol className="mt-1 flex flex-col gap-1">
      {earlier.map((event) => (
        <li key={event.seq} className="flex gap-3">
          <TimeText at={event.at} form="clock" />
          <Words event={event} />
        </li>
      ))}
    </ol>
  </details>
)

const FURTHER: Column<Entry>[] = [
  {
    name: tOperation.activity.details,
    cell: ({ data }) =>
      Object.keys(data).length === 0 ? null : (
        <details>
          <summary className="text-table whitespace-nowrap">{t.show}</summary>
          <pre className="code mt-1">{shown(JSON.stringify(data, null, 2))}</pre>
        </details>
      ),
  },
  { name: tOperation.activity.evidence, kind: 'number', cell: ({ evidence_seq }) => evidence_seq },
]
