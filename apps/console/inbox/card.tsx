import { useQuery } from '@tanstack/react-query'
import type { InboxRow } from '../api/types.ts'
import { gateQuery } from '../queries/operations.ts'
import { GateLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { ShapeIcon, Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { ruleOf, ruleWords, votesInRound } from '../votes/votes.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { ballotOf } from './alike.ts'
import { SelectBox, type Selection, selectByKey, WhyAlone } from './selection.tsx'

/** A waiting gate: its question, its changes, its deadline, and the checkbox that selects it. */
export const GateCard = ({ row, selection }: { row: InboxRow; selection: Selection }) => {
  const rule = ruleOf(row)
  const ballot = ballotOf(row)
  const { operation_id, gate_id } = row
  return (
    <article className="card gate-card flex flex-col gap-3 p-4" data-selected={selection.has(ballot) || undefined}>
      <div className="flex items-start gap-3">
        <SelectBox row={ballot} selection={selection} />
        <span className="mt-1">
          <ShapeIcon shape="diamond" tone="wait" />
        </span>
        <div className="min-w-0 flex-1">
          <h2 className="text-title font-semibold wrap-anywhere">
            <GateLink
              operation_id={operation_id}
              gate_id={gate_id}
              data-row=""
              className="card-link"
              onKeyDown={selectByKey(ballot, selection)}
            >
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
      <WhyAlone row={ballot} selection={selection} mine={row.eligible_me} />
      {row.eligible_me ? null : (
        <p className="text-table text-muted">{row.why_not_me ? row.why_not_me : tDecide.inbox.not_you}</p>
      )}
    </article>
  )
}

/** A gate that left the list while this page was open: one line with its outcome, gone on the next visit. */
export const Decided = ({ row }: { row: InboxRow }) => {
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
