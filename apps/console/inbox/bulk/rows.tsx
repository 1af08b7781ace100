import { useQuery } from '@tanstack/react-query'
import type { Gate, Patch } from '../../api/types.ts'
import { Because, type Why } from '../../command/allowed.tsx'
import type { Result } from '../../command/each.ts'
import { Unsettled } from '../../command/together.tsx'
import { graphQuery } from '../../queries/operations.ts'
import { Status } from '../../values/status.tsx'
import { ChangeLine, Said } from '../../votes/brief.tsx'
import { whereWords } from '../../votes/context.ts'
import { changeWords, nodeNames } from '../../votes/patch-words.ts'
import { placesOf, stepOf } from '../../votes/releases.ts'
import { tDecide } from '../../words/decide.ts'
import { tBulk as words } from '../../words/frame/inbox-parts.ts'
import { t } from '../../words/index.ts'
import { type Ballot, type Candidate, isPatch, keyOf, type Together } from './alike.ts'

type ItemsProps = {
  items: Candidate[]
  /** Each shows its whole change, if that differs from the others', or where it is. */
  shown?: 'change' | 'place' | undefined
  ticked: ReadonlySet<string>
  results: ReadonlyMap<string, Result>
  /** Ticks an item, or takes its tick away; missing once sending has begun. */
  toggle: ((row: Ballot) => void) | undefined
}

/** Items to decide, each with its box and then its answer. */
export const Items = ({ items, shown, ticked, results, toggle }: ItemsProps) => (
  <ul className="flex flex-col divide-y divide-line">
    {items.map((candidate) => {
      const key = keyOf(candidate.row)
      const box = { ticked: ticked.has(key), result: results.get(key), toggle: toggle && (() => toggle(candidate.row)) }
      return <Row key={key} candidate={candidate} shown={shown} {...box} />
    })}
  </ul>
)

type RowProps = {
  candidate: Candidate
  shown: ItemsProps['shown']
  ticked: boolean
  result: Result | undefined
  toggle: (() => void) | undefined
}
const Row = ({ candidate: { row, read }, shown, ticked, result, toggle }: RowProps) => (
  <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
    <label className="flex min-w-0 flex-1 items-center gap-3">
      <input type="checkbox" checked={ticked} disabled={!toggle} onChange={() => toggle?.()} />
      <span className="min-w-0 wrap-anywhere">
        <Said>{row.operation_title}</Said>
        <span className="text-muted">
          {' · '}
          <Said>{row.title}</Said>
        </span>
      </span>
    </label>
    {shown === 'change' ? <Change read={read} /> : null}
    {shown === 'place' ? <p className="text-muted">{placeOf(read)}</p> : null}
    {result ? <Answer result={result} /> : null}
  </li>
)

/** How many resources of which types in which regions a gate changes. */
export const placeOf = (read: Candidate['read']): string =>
  isPatch(read) || !read.subject ? '' : whereWords({ ...placesOf(read.subject), batches: [] })

/** The changes of a gate, and its steps by name if no field shows their effect; for a patch, its graph changes. */
export const Change = ({ read }: Pick<Candidate, 'read'>) => {
  if (isPatch(read)) return <PatchChange patch={read} />
  const { subject, brief } = read
  return subject === null ? null : (
    <div>
      <ChangeLine subject={subject} order={brief?.order} />
      {subject.changes.length > 0 ? null : (
        <p className="text-muted wrap-anywhere">
          <Said>{stepsOf(subject)}</Said>
        </p>
      )}
    </div>
  )
}
const STEPS = 6
const PatchChange = ({ patch: { operation_id, changes } }: { patch: Patch }) => {
  const nodes = useQuery(graphQuery(operation_id)).data?.nodes
  const nameOf = nodeNames(nodes, changes)
  return (
    <ul className="list-disc pl-5">
      {changes.slice(0, STEPS).map((change) => (
        <li key={JSON.stringify(change)} className="wrap-anywhere">
          <Said>{changeWords(change, nameOf)}</Said>
        </li>
      ))}
      {changes.length > STEPS ? <li className="text-muted">{t.others(changes.length - STEPS)}</li> : null}
    </ul>
  )
}
const stepsOf = ({ releases }: NonNullable<Gate['subject']>): string => {
  const names = [...new Set(releases.map(stepOf))]
  return t.and([...names.slice(0, STEPS), ...(names.length > STEPS ? [t.others(names.length - STEPS)] : [])])
}

const Answer = ({ result }: { result: Result }) =>
  result.state !== 'done' ? (
    <Unsettled result={result} held={words.held} />
  ) : /^(waiting|awaiting_approval)$/.test(result.status) ? (
    <span>{words.counted}</span>
  ) : (
    <Status state={result.status} />
  )

type LeftOutProps = { alone: Ballot[]; unread: Ballot[]; verdict: Together; elsewhere: Candidate[]; out: Candidate[] }
/** Every selected item that is not decided here, and why. */
export const LeftOut = ({ alone, unread, verdict, elsewhere, out }: LeftOutProps) => {
  const all: { row: Ballot; why: Why }[] = [
    ...alone.map((row) => ({ row, why: whyNot(row, verdict) })),
    ...unread.map((row) => ({ row, why: t.problem.failed })),
    ...elsewhere.map(({ row }) => ({ row, why: words.elsewhere(row.environment ?? t.none) })),
    ...out.map(({ row, out }) => ({ row, why: out === 'differs' ? tDecide.gate.digest_differs : words.moved })),
  ]
  return all.length === 0 ? null : (
    <section aria-label={words.out} className="flex flex-col gap-2">
      <h3 className="font-semibold">{words.out}</h3>
      <ul className="flex flex-col gap-1">
        {all.map(({ row, why }) => (
          <li key={keyOf(row)} className="wrap-anywhere">
            <Said>{row.operation_title}</Said>:{' '}
            <span className="text-muted">
              <Because why={why} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

const whyNot = ({ alone, barred }: Ballot, verdict: Together): Why => {
  const why = alone[verdict]
  return why ? tDecide.inbox.bulk.alone[why] : (barred[verdict] ?? tDecide.inbox.not_you)
}
