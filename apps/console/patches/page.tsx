import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useTopic } from '../api/hooks.ts'
import type { Patch } from '../api/types.ts'
import { actionOf, mayPress } from '../command/allowed.tsx'
import { shortId } from '../kit/format.ts'
import { patchQuery } from '../queries/changes.ts'
import { graphQuery, operationQuery } from '../queries/operations.ts'
import { Card } from '../ui/card.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Failure } from '../ui/failure.tsx'
import { Heading, Loading, Page } from '../ui/page.tsx'
import { NodeLink, OperationLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { ShapeIcon, Status } from '../values/status.tsx'
import { TimeText, useTimeWords } from '../values/time.tsx'
import { VoteList } from '../votes/votes.tsx'
import { tChange } from '../words/change.ts'
import { t } from '../words/index.ts'
import { PatchDecide } from './decide.tsx'
import { PatchChanges, PatchDiff } from './diff.tsx'
import { PatchGraph } from './graph.tsx'
import { nodeNames } from './words.ts'

/** One patch: its reason, its changes, the resulting graph, the required votes, and the decision. */
export const PatchPage = () => {
  const { operation_id, patch_id } = useParams({ from: '/shell/operations/$operation_id/patches/$patch_id' })
  useTopic(`operation:${operation_id}`)
  const { data: patch, error, isPending, refetch } = useQuery(patchQuery(operation_id, patch_id))
  const operation = useQuery(operationQuery(operation_id)).data
  const graph = useQuery(graphQuery(operation_id)).data
  const title = tChange.patch.title(shortId(patch_id))
  if (patch === undefined) {
    return (
      <Page>
        <Heading title={title}>{title}</Heading>
        {isPending ? <Loading /> : <Failure error={error} retry={() => void refetch()} noun={t.noun.patch} />}
      </Page>
    )
  }
  const nodeName = nodeNames(graph?.nodes, patch.changes)
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
        <Sentence patch={patch} />
      </div>
      <div className="gate-columns">
        <div className="flex min-w-0 flex-col gap-4">
          <Section title={tChange.patch.subject} note={tChange.patch.subject_note}>
            <PatchChanges changes={patch.changes} nameOf={nodeName} />
          </Section>
          <Section title={tChange.patch.result} note={tChange.patch.result_note(patch.base_revision)}>
            <PatchGraph
              operation_id={patch.operation_id}
              base_revision={patch.base_revision}
              changes={patch.changes}
              diff={patch.diff_graph}
            />
            <PatchDiff diff={patch.diff_graph} changes={patch.changes} nameOf={nodeName} />
          </Section>
          <Section title={tChange.patch.required}>
            <Agreement patch={patch} nodeName={nodeName} />
          </Section>
        </div>
        <div className="decide-column">
          {patch.status === 'awaiting_approval' ? (
            <PatchDecide patch={patch} />
          ) : (
            <Outcome patch={patch} mayPropose={mayPress(operation && actionOf(operation, 'propose_patch'))} />
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

const Sentence = ({ patch }: { patch: Patch }) => {
  const words = useTimeWords()
  return (
    <>
      <p>{tChange.patch.proposed(nameOf(patch.proposer), words(patch.created_at), patch.base_revision)}</p>
      <p>{statusWords(patch, words)}</p>
      {patch.status === 'awaiting_approval' ? (
        <p className="text-muted">{tChange.patch.deadline(words(patch.expires_at))}</p>
      ) : null}
      {patch.ticket ? <p className="text-muted">{patch.ticket}</p> : null}
    </>
  )
}

const ruleOf = ({ required: { quorum, groups, four_eyes } }: Patch): string =>
  tChange.patch.rule(
    quorum,
    groups.map(({ group }) => group),
    four_eyes,
  )

const statusWords = (patch: Patch, words: (at: string) => string): string => {
  const { status, status_reason, decided, applied_revision } = patch
  const who = decided ? nameOf(decided.by) : t.system
  const at = decided ? words(decided.at) : ''
  switch (status) {
    case 'awaiting_approval':
      return tChange.patch.waiting(ruleOf(patch))
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

const Agreement = ({ patch, nodeName }: { patch: Patch; nodeName: (id: string) => string }) => (
  <>
    <p>
      {ruleOf(patch)}.{' '}
      {patch.required.policies.length > 0 ? (
        <span className="text-muted">{tChange.patch.policies(patch.required.policies)}</span>
      ) : null}
    </p>
    {patch.votes.length === 0 ? (
      <p className="text-muted">{tChange.patch.no_votes}</p>
    ) : (
      <VoteList votes={patch.votes} />
    )}
    {patch.rearmed_gates.length > 0 ? <p>{tChange.patch.rearmed(patch.rearmed_gates)}</p> : null}
    {patch.status === 'awaiting_approval' ? (
      <div>
        <h3 className="font-semibold">{tChange.patch.held}</h3>
        {patch.held_nodes.length === 0 ? (
          <p className="text-muted">{tChange.patch.held_none}</p>
        ) : (
          <ul className="names">
            {patch.held_nodes.map((node_id) => (
              <li key={node_id}>
                <NodeLink
                  operation_id={patch.operation_id}
                  node_id={node_id}
                  className="inline-flex min-h-6 items-center"
                >
                  {nodeName(node_id)}
                </NodeLink>
              </li>
            ))}
          </ul>
        )}
      </div>
    ) : null}
    <p className="flex items-center gap-1 text-table text-muted">
      <code className="wrap-anywhere">{patch.digest}</code> <CopyButton text={patch.digest} />
    </p>
  </>
)

/** Its end, and the next step; a moved base leads to the same changes on the current graph. */
const Outcome = ({ patch, mayPropose }: { patch: Patch; mayPropose: boolean }) => {
  const { operation_id, patch_id, status, rebase, decided } = patch
  return (
    <section className="card flex flex-col items-start gap-3 p-4" aria-label={tChange.patch.panel}>
      <Status state={status} badge />
      {decided ? (
        <p>
          {nameOf(decided.by)}, <TimeText at={decided.at} form="both" />
        </p>
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
      <OperationLink id={operation_id} className="button">
        {tChange.patch.watch}
      </OperationLink>
    </section>
  )
}
