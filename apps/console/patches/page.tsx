import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useTopic } from '../api/hooks.ts'
import type { Patch, PatchDetail } from '../api/types.ts'
import { PatchBrief } from '../briefs/patch.tsx'
import { actionOf, mayPress } from '../command/allowed.tsx'
import { useDeciding } from '../command/deciding.ts'
import { shortId, shown } from '../kit/format.ts'
import { patchQuery } from '../queries/changes.ts'
import { graphQuery, operationQuery } from '../queries/operations.ts'
import { Card } from '../ui/card.tsx'
import { readOf, UnreadPage } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { NodeLink, OperationLink } from '../values/links.tsx'
import { isMe, nameOf } from '../values/person.tsx'
import { ShapeIcon, Status } from '../values/status.tsx'
import { TimeText, useTimeWords } from '../values/time.tsx'
import { didWord } from '../votes/panel.tsx'
import { nodeNames } from '../votes/patch-words.ts'
import { VoteList } from '../votes/votes.tsx'
import { tChange } from '../words/change.ts'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { PatchDecide, type PatchVerdict } from './decide.tsx'
import { PatchDiff } from './diff.tsx'
import { PatchGraph } from './graph.tsx'

/** One patch: its reason, its changes, the resulting graph, the required votes, and the decision. */
export const PatchPage = () => {
  const { operation_id, patch_id } = useParams({ from: '/shell/operations/$operation_id/patches/$patch_id' })
  useTopic(`operation:${operation_id}`)
  const query = useQuery({
    ...patchQuery(operation_id, patch_id),
    refetchInterval: ({ state }) => (state.data?.status === 'awaiting_approval' ? CONTEXT_AGES_MS : false),
  })
  const patch = readOf(query)
  const waiting = patch?.status === 'awaiting_approval'
  const { open, setOpen, late, outcome } = useDeciding<PatchVerdict>(waiting)
  const operation = useQuery(operationQuery(operation_id)).data
  const graph = useQuery(graphQuery(operation_id)).data
  const title = tChange.patch.title(shortId(patch_id))
  const at = useTimeWords()
  if (patch === undefined) return <UnreadPage title={title} query={query} noun="patch" />
  const nodeName = nodeNames(graph?.nodes, patch.changes)
  const states = new Map(graph?.nodes.map(({ node_id, state }) => [node_id, state]))
  // Once the operation has ended, a node has run again or left the plan, no retry is asked for.
  const isStuck = ({ node_id }: { node_id: string }) => STUCK.has(states.get(node_id) ?? '')
  const stuck = patch.status === 'applied' && operation?.ended_at === null ? patch.mends.filter(isStuck) : []
  return (
    <Page>
      <p className="text-muted">
        <Link to="/operations/$operation_id/patches" params={{ operation_id }}>
          {operation?.title ?? t.noun.operation}
        </Link>
        , {title}
      </p>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <Heading title={title}>{patch.reason}</Heading>
        <Status state={patch.status} badge />
      </div>
      <div className="max-w-text" aria-live="polite">
        {waiting ? null : <p>{statusWords(patch, at)}</p>}
      </div>
      <div className="gate-columns">
        <div className="flex min-w-0 flex-col gap-4">
          <PatchBrief patch={patch} read_at={query.dataUpdatedAt} nodeName={nodeName} />
          <Section title={tChange.patch.result} note={tChange.patch.result_note(patch.base_revision)}>
            <PatchGraph
              operation_id={patch.operation_id}
              base_revision={patch.base_revision}
              changes={patch.changes}
              diff={patch.diff_graph}
            />
            <PatchDiff diff={patch.diff_graph} changes={patch.changes} nameOf={nodeName} />
          </Section>
          {patch.votes.length > 0 ? (
            <Section title={tDecide.gate.votes}>
              <VoteList votes={patch.votes} />
            </Section>
          ) : null}
        </div>
        <div className="decide-column">
          {waiting ? (
            <PatchDecide {...{ patch, nodeName, open, setOpen }} />
          ) : (
            <Outcome
              {...{ patch, late, stuck }}
              mayPropose={mayPress(operation && actionOf(operation, 'propose_patch'))}
              ref={outcome}
            />
          )}
        </div>
      </div>
    </Page>
  )
}

const Section = ({ children, ...head }: Parameters<typeof Card>[0]) => (
  <Card {...head}>
    <div className="flex flex-col gap-3 p-4">{children}</div>
  </Card>
)

const CONTEXT_AGES_MS = 30_000
const STUCK = new Set(['failed', 'outcome_unknown', 'compensation_failed'])

const statusWords = (patch: Patch, words: (at: string) => string): string => {
  const { status, status_reason, decided, applied_revision } = patch
  const who = decided ? nameOf(decided.by) : t.system
  const at = decided ? words(decided.at) : ''
  switch (status) {
    case 'awaiting_approval':
      return ''
    case 'applied':
      return tChange.patch.applied(who, at, applied_revision ?? patch.base_revision + 1)
    case 'not_applicable':
      return tChange.patch.not_applicable(
        tChange.patch.why[status_reason ?? ''] ?? status_reason ?? tChange.patch.nothing,
      )
    case 'expired':
      return tChange.patch.expired
    default:
      return tChange.patch[status](who, at)
  }
}

/** The outcome and the next step; if the base has moved, a link leads to the same changes on the current graph. */
type OutcomeProps = {
  patch: PatchDetail
  mayPropose: boolean
  late: boolean
  stuck: PatchDetail['mends']
  ref: React.Ref<HTMLElement>
}
const Outcome = ({ patch, mayPropose, late, stuck, ref }: OutcomeProps) => {
  const { operation_id, patch_id, status, rebase, decided } = patch
  return (
    <section
      ref={ref}
      tabIndex={-1}
      className="card flex flex-col items-start gap-3 p-4"
      aria-label={tChange.patch.panel}
    >
      <Status state={status} badge />
      {decided ? (
        <p>
          {nameOf(decided.by)}, <TimeText at={decided.at} form="both" />
        </p>
      ) : null}
      {late && decided && !isMe(decided.by) ? (
        <p role="alert">{tDecide.gate.too_late(nameOf(decided.by), didWord(patch.status))}</p>
      ) : null}
      {status === 'not_applicable' ? (
        rebase === null ? (
          <p className="flex gap-2 text-muted">
            <ShapeIcon shape="slash" tone="idle" />
            {tChange.patch.rebase_none}
          </p>
        ) : mayPropose ? (
          <Link
            to="/operations/$operation_id/patches/new"
            params={{ operation_id }}
            search={{ from: patch_id }}
            className="button main"
          >
            {tChange.patch.rebase}
          </Link>
        ) : null
      ) : null}
      {stuck.length > 0 ? (
        <div>
          <p>{tChange.patch.still}</p>
          <ul>
            {stuck.map(({ node_id, name }) => (
              <li key={node_id}>
                <NodeLink operation_id={operation_id} node_id={node_id}>
                  {shown(name)}
                </NodeLink>
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      <OperationLink id={operation_id} className="button">
        {tChange.patch.watch}
      </OperationLink>
    </section>
  )
}
