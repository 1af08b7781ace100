import type { Waiting } from '../api/types.ts'
import { NodeLink, OperationLink, PatchLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { ShapeIcon, Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { patchBallot } from './alike.ts'
import { SelectBox, type Selection, selectByKey, WhyAlone } from './selection.tsx'

export const isEmpty = ({ patches, failures }: Waiting): boolean => patches.length + failures.length === 0

/** Failures that hold an operation, then patches to vote on: one line each, oldest first. */
export const WaitingRows = ({ waiting, selection }: { waiting: Waiting | undefined; selection: Selection }) =>
  waiting === undefined || isEmpty(waiting) ? null : (
    <ul className="card flex flex-col divide-y divide-line" aria-label={tDecide.inbox.rest}>
      {waiting.failures.map((failure) => (
        <Failure key={failure.operation_id} failure={failure} />
      ))}
      {waiting.patches.map((patch) => (
        <Patch key={patch.patch_id} patch={patch} selection={selection} />
      ))}
    </ul>
  )

const LINE = 'flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2'

const Failure = ({ failure }: { failure: Waiting['failures'][number] }) => {
  const { operation_id, operation_title, nodes, node_count, waiting_since } = failure
  return (
    <li className={LINE}>
      {nodes.map(({ node_id, name, state, message }, index) => (
        <span key={node_id} className="flex flex-wrap items-center gap-x-2" title={message ?? undefined}>
          <Status state={state} />
          <NodeLink operation_id={operation_id} node_id={node_id} {...(index === 0 && { 'data-row': '' })}>
            {name}
          </NodeLink>
        </span>
      ))}
      {node_count > nodes.length ? <span>{tDecide.inbox.more_failures(node_count - nodes.length)}</span> : null}
      <Rest operation_id={operation_id} title={operation_title} since={waiting_since} />
    </li>
  )
}

const Patch = ({ patch, selection }: { patch: Waiting['patches'][number]; selection: Selection }) => {
  const { operation_id, operation_title, patch_id, reason, proposer, change_count, approvals, quorum } = patch
  const ballot = patchBallot(patch)
  return (
    <li className={LINE}>
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
    </li>
  )
}

const Rest = ({ operation_id, title, since }: { operation_id: string; title: string; since: string }) => (
  <span className="ml-auto flex flex-wrap gap-x-3 text-muted">
    <OperationLink id={operation_id}>{title}</OperationLink>
    <TimeText at={since} />
  </span>
)
