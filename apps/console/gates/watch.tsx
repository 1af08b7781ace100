import { type Watch, watchRows } from '../../shared/contracts/watch.ts'
import { type Column, DataTable } from '../ui/table.tsx'
import { Status } from '../values/status.tsx'
import { tObserved as words } from '../words/operations/plan.ts'

type Row = ReturnType<typeof watchRows>[number]
const figure = (value: number | null | undefined) => (value === undefined ? null : (value ?? '-'))
const COLUMNS: Column<Row>[] = [
  { name: words.check, kind: 'lead', cell: ({ name }) => <code>{name}</code> },
  { name: words.bad, kind: 'number', cell: ({ failed, samples }) => words.of(failed, samples) },
  { name: words.last, kind: 'number', cell: ({ last }) => figure(last) },
  { name: words.min, kind: 'number', cell: ({ min }) => figure(min) },
  { name: words.max, kind: 'number', cell: ({ max }) => figure(max) },
  { name: words.baseline, kind: 'number', cell: ({ baseline }) => figure(baseline) },
]

/** The numbers that a watch before the gate has observed. */
export const WatchView = ({ node_id, watch }: { node_id: string; watch: Watch }) => (
  <section className="flex flex-col gap-2 border-b border-line p-4 last:border-0">
    <h3 className="flex items-center gap-2 font-semibold">
      {words.title} <code className="font-normal">{node_id}</code>
      <Status state={watch.passed ? 'succeeded' : 'failed'} />
    </h3>
    <DataTable caption={words.title} columns={COLUMNS} rows={watchRows(watch)} keyOf="name" />
  </section>
)
