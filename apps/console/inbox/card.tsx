import { Suspense } from 'react'
import type { InboxRow } from '../api/types.ts'
import { Because } from '../command/allowed.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { GateLink } from '../values/links.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { ruleOf, ruleWords, votesInRound } from '../votes/votes.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { ballotOf } from './bulk/alike.ts'
import { SelectBox, type Selection, selectByKey, WhyAlone } from './selection.tsx'
import { type Seen, useHeight } from './steady.ts'

/** Few gates are decided while the page is open. */
const GateOutcome = lazyPart(() => import('./outcome.tsx').then((part) => ({ default: part.GateOutcome })))

const RISK_TONES: Record<string, string> = { low: 'idle', medium: 'wait' }

type GateCardProps = Seen<InboxRow> & { selection: Selection }

/** A waiting gate: its question, its changes, its deadline, and the checkbox that selects it; once gone, its outcome. */
export const GateCard = ({ row, gone, selection }: GateCardProps) => {
  const ballot = ballotOf(row)
  const { operation_id, gate_id } = row
  return (
    <article
      {...useHeight(gone)}
      className={`card gate-card flex flex-col gap-3 p-4 ${gone ? 'text-muted' : ''}`}
      data-selected={(!gone && selection.has(ballot)) || undefined}
    >
      <div className="flex flex-wrap items-start gap-3">
        {gone ? null : <SelectBox row={ballot} selection={selection} />}
        <span className="mt-1">
          <ShapeIcon shape="diamond" tone={gone ? 'idle' : 'wait'} />
        </span>
        <div className="min-w-40 flex-1">
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
          {gone ? (
            <Suspense fallback={null}>
              <GateOutcome operation_id={operation_id} gate_id={gate_id} />
            </Suspense>
          ) : null}
        </div>
        {row.risk && !gone ? (
          <span className={`badge tone-${RISK_TONES[row.risk] ?? 'bad'}`}>
            {tDecide.inbox.risk}: {t.risk[row.risk] ?? row.risk}
          </span>
        ) : null}
      </div>
      {gone ? null : <Facts row={row} />}
      {gone ? null : <WhyAlone row={ballot} selection={selection} mine={row.eligible_me} />}
      {row.eligible_me || gone ? null : (
        <p className="text-table text-muted">
          <Because why={ballot.barred.approve ?? tDecide.inbox.not_you} />
        </p>
      )}
    </article>
  )
}

const Facts = ({ row }: { row: InboxRow }) => (
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
        {t.of(votesInRound(row).filter((vote) => vote.decision === 'approve').length, ruleOf(row).quorum)}
        <span className="text-muted"> ({ruleWords(row)})</span>
      </dd>
    </div>
  </dl>
)
