import { Suspense } from 'react'
import type { Waiting } from '../api/types.ts'
import { lazyPart } from '../ui/lazy.ts'
import { NodeLink, OperationLink, PatchLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { NodeStatus, ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { patchBallot } from './bulk/alike.ts'
import { SelectBox, type Selection, selectByKey, WhyAlone } from './selection.tsx'
import { groupOf, type Line, lineKey, type Seen, useHeight } from './steady.ts'

/** Few rows leave while the page is open. */
const Outcome = lazyPart(() => import('./outcome.tsx').then((part) => ({ default: part.Outcome })))

/** Deadlines are seldom near, and targets seldom drift. */
const ExpiringLine = lazyPart(() => import('./expiring.tsx').then((part) => ({ default: part.ExpiringLine })))

type WaitingPatch = Waiting['patches'][number]
type OpenFailure = Waiting['failures'][number]

/** Failures that hold an operation, patches to vote on and deadlines: one line each, those of an operation together. */
export const WaitingRows = ({ rows, selection }: { rows: Seen<Line>[]; selection: Selection }) =>
  rows.length === 0 ? null : (
    <ul className="card flex flex-col divide-y divide-line" aria-label={tDecide.inbox.rest} data-lines="">
      {rows.map(({ row, gone }, at) => (
        <Row key={lineKey(row)} gone={gone} below={at > 0 && groupOf(rows[at - 1]?.row as Line) === groupOf(row)}>
          {gone ? (
            <Suspense fallback={null}>
              <Outcome line={row} />
            </Suspense>
          ) : 'patch_id' in row ? (
            <Patch patch={row} selection={selection} />
          ) : 'kind' in row || row.node_count === 0 ? (
            <Suspense fallback={null}>
              <ExpiringLine line={row} />
            </Suspense>
          ) : (
            <Failure failure={row} />
          )}
        </Row>
      ))}
    </ul>
  )

type RowProps = { gone: boolean; below: boolean; children: React.ReactNode }

/** `below`: the line before it is of the same operation. */
const Row = ({ gone, below, children }: RowProps) => (
  <li
    {...useHeight<HTMLLIElement>(gone)}
    className={`flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 ${below ? 'below' : ''}`}
  >
    {children}
  </li>
)

const Failure = ({ failure }: { failure: OpenFailure }) => {
  const { operation_id, operation_title, nodes, node_count, waiting_since } = failure
  return (
    <>
      {nodes.map(({ node_id, name, state, message }, index) => (
        <span key={node_id} className="flex flex-wrap items-center gap-x-2" title={message ?? undefined}>
          <NodeStatus state={state} />
          <NodeLink operation_id={operation_id} node_id={node_id} {...(index === 0 && { 'data-row': '' })}>
            {name}
          </NodeLink>
        </span>
      ))}
      {node_count > nodes.length ? <span>{tDecide.inbox.more_failures(node_count - nodes.length)}</span> : null}
      <Rest operation_id={operation_id} title={operation_title} since={waiting_since} />
    </>
  )
}

const Patch = ({ patch, selection }: { patch: WaitingPatch; selection: Selection }) => {
  const { operation_id, operation_title, patch_id, reason, proposer, change_count, approvals, quorum } = patch
  const ballot = patchBallot(patch)
  return (
    <>
      <SelectBox row={ballot} selection={selection} />
      <ShapeIcon shape="diamond" tone="wait" />
      <span>{tDecide.inbox.patch}</span>
      <PatchLink
        operation_id={operation_id}
        patch_id={patch_id}
        data-row=""
        className="font-semibold wrap-anywhere"
        onKeyDown={selectByKey(ballot, selection)}
      >
        {reason}
      </PatchLink>
      <span>{tDecide.inbox.patch_changes(change_count)}</span>
      <span>{nameOf(proposer)}</span>
      <span className="tabular-nums">{t.of(approvals, quorum)}</span>
      <Rest operation_id={operation_id} title={operation_title} since={patch.waiting_since} />
      <WhyAlone row={ballot} selection={selection} mine={patch.mine} />
    </>
  )
}

const Rest = ({ operation_id, title, since }: { operation_id: string; title: string; since: string }) => (
  <span className="ml-auto flex flex-wrap gap-x-3 text-muted">
    <OperationLink id={operation_id}>{title}</OperationLink>
    <TimeText at={since} />
  </span>
)
