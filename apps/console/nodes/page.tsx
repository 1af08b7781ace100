import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Suspense, useEffect, useState } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { NodeDetail, Operation } from '../api/types.ts'
import { NodeFacts, newestAttempt } from '../briefs/node.tsx'
import { ActionButton, actionOf, mayPress, WhyNot } from '../command/allowed.tsx'
import { Filter, Select } from '../forms/select.tsx'
import { whileAtWork } from '../graph/progress.ts'
import { interventionsOfNode } from '../interventions/offered.ts'
import { useWishes } from '../kit/wish.ts'
import { ArtifactTable } from '../proof/list.tsx'
import { nodeQuery, operationQuery } from '../queries/operations.ts'
import { readOf, UnreadPage } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Empty, Heading, Loading, Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { valueText } from '../values/diff.tsx'
import { PatchLink } from '../values/links.tsx'
import { NodeStatus } from '../values/status.tsx'
import { tChange } from '../words/change.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tProof } from '../words/proof.ts'

const LogView = lazyPart(() => import('../logs/view.tsx').then((part) => ({ default: part.LogView })))
const CompareView = lazyPart(() => import('../logs/compare-view.tsx').then((part) => ({ default: part.CompareView })))
const RetryDialog = lazyPart(() => import('./retry.tsx').then((part) => ({ default: part.RetryDialog })))
const InterveneDialog = lazyPart(() =>
  import('../interventions/dialog.tsx').then((part) => ({ default: part.InterveneDialog })),
)
const TABS = ['summary', 'logs', 'io', 'artifacts'] as const
type Tab = (typeof TABS)[number]

/** One node: its work, its attempts, its log. */
export const NodePage = () => {
  const { operation_id, node_id } = useParams({ from: '/shell/operations/$operation_id/nodes/$node_id' })
  const search = useSearch({ from: '/shell/operations/$operation_id/nodes/$node_id' })
  useTopic(`operation:${operation_id}`)
  const operation = useQuery(operationQuery(operation_id)).data
  const query = useQuery({ ...nodeQuery(operation_id, node_id), refetchInterval: whileAtWork })
  const node = readOf(query)
  // People open the log next: its lines are asked for once its code has loaded.
  useEffect(() => void LogView.preload?.(), [])
  if (node === undefined) return <UnreadPage title={node_id} query={query} noun="node" />
  return <Shown node={node} operation={operation} {...search} />
}

type Attempt = NodeDetail['attempts'][number]
type ShownProps = {
  node: NodeDetail
  operation: Operation | undefined
  tab: Tab
  attempt?: number
  /** The attempt whose log is compared with this one's. */
  compare?: number
}

const Shown = ({ node, operation, tab, attempt: wanted, compare }: ShownProps) => {
  const { operation_id, node_id } = useParams({ from: '/shell/operations/$operation_id/nodes/$node_id' })
  const attempt = node.attempts.find((one) => one.attempt === wanted) ?? newestAttempt(node)
  return (
    <Page>
      <p className="text-muted">
        <Link to="/operations/$operation_id/graph" params={{ operation_id }} search={{ node: node_id }}>
          {operation?.title ?? t.noun.operation}
        </Link>
      </p>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1" aria-live="polite">
          <Heading title={node.name}>{node.name}</Heading>
          <NodeStatus state={node.state} person={node.gates.some(({ status }) => status === 'waiting')} badge />
        </div>
        <div className="flex flex-wrap items-center gap-2 lg:ml-auto lg:max-w-140 lg:justify-end">
          <AttemptSwitch node={node} attempt={attempt?.attempt} />
          <Actions node={node} operation={operation} />
        </div>
      </div>
      <Tabs label={tOperation.node.tabs_label}>
        {TABS.map((choice) => (
          <Link
            key={choice}
            to="/operations/$operation_id/nodes/$node_id"
            params={{ operation_id, node_id }}
            search={(before) => ({ ...before, tab: choice })}
            aria-current={choice === tab ? 'page' : undefined}
          >
            {tOperation.node.tabs[choice]}
          </Link>
        ))}
      </Tabs>
      {tab === 'summary' ? (
        <div className="card flex flex-col gap-4 p-4">
          <NodeFacts node={node} attempt={attempt} />
        </div>
      ) : null}
      {tab === 'logs' ? <Logs node={node} attempt={attempt} compare={compare} /> : null}
      {tab === 'io' ? <InputsOutputs node={node} /> : null}
      {tab === 'artifacts' ? (
        <div className="card">
          {node.artifacts.length === 0 ? (
            <Empty>{tProof.artifacts.empty_node}</Empty>
          ) : (
            <ArtifactTable operation_id={operation_id} rows={node.artifacts} />
          )}
        </div>
      ) : null}
    </Page>
  )
}

/** Retry, intervention and patch: offered for a node that is stuck, or if the server allows them. */
const Actions = ({ node, operation }: { node: NodeDetail; operation: Operation | undefined }) => {
  const [asking, setAsking] = useState<'retry' | 'intervene' | null>(null)
  const retry = actionOf(node, 'retry')
  const interventions = interventionsOfNode(node)
  const intervene = interventions.offered.find(mayPress) ?? interventions.offered[0]
  useWishes(node.node_id, (what) => {
    if (what === 'retry' || what === 'intervene') setAsking(what)
    return true
  })
  const stuck = node.state === 'failed' || node.state === 'outcome_unknown'
  const patch = stuck ? operation?.open_patches[0] : undefined
  return (
    <>
      {patch && operation ? (
        <PatchLink operation_id={operation.operation_id} patch_id={patch.patch_id} className="button main">
          {tChange.patch.review}
        </PatchLink>
      ) : null}
      {stuck && operation && mayPress(actionOf(operation, 'propose_patch')) ? (
        <Link
          to="/operations/$operation_id/patches/new"
          params={{ operation_id: operation.operation_id }}
          search={{ node: node.node_id }}
          className="button"
        >
          {tChange.patch.propose}
        </Link>
      ) : null}
      {stuck || mayPress(intervene) ? (
        <ActionButton action={intervene} press={() => setAsking('intervene')}>
          {tChange.intervene.open}
        </ActionButton>
      ) : null}
      {stuck || retry?.allowed ? (
        <ActionButton action={retry} press={() => setAsking('retry')} main={patch === undefined}>
          {tOperation.node.retry}
        </ActionButton>
      ) : null}
      {stuck ? <WhyNot actions={[retry, intervene]} /> : null}
      {asking ? (
        <Suspense fallback={null}>
          {asking === 'retry' ? (
            <RetryDialog node={node} close={() => setAsking(null)} />
          ) : (
            <InterveneDialog subject={interventions} close={() => setAsking(null)} />
          )}
        </Suspense>
      ) : null}
    </>
  )
}

type LogsProps = { node: NodeDetail; attempt: Attempt | undefined; compare: number | undefined }

const Logs = ({ node, attempt, compare }: LogsProps) => {
  const { operation_id, node_id } = useParams({ from: '/shell/operations/$operation_id/nodes/$node_id' })
  if (attempt === undefined)
    return (
      <div className="card">
        <Empty>{tOperation.logs.not_started}</Empty>
      </div>
    )
  const other = node.attempts.find((one) => one.attempt === compare && one !== attempt)?.attempt
  return (
    <Suspense fallback={<Loading rows={1} />}>
      <CompareSwitch node={node} attempt={attempt} other={other} />
      {other === undefined ? (
        <LogView
          key={`${node_id} ${attempt.attempt}`}
          operation_id={operation_id}
          node_id={node_id}
          attempt={attempt.attempt}
          open={attempt.ended_at === null}
          failed={attempt.error !== null}
        />
      ) : (
        <CompareView operation_id={operation_id} node_id={node_id} before={other} after={attempt.attempt} />
      )}
    </Suspense>
  )
}

type CompareSwitchProps = { node: NodeDetail; attempt: Attempt; other: number | undefined }

/** Chooses the attempt whose log is shown beside this one's. */
const CompareSwitch = ({ node, attempt, other }: CompareSwitchProps) => {
  const navigate = useNavigate({ from: '/operations/$operation_id/nodes/$node_id' })
  const others = node.attempts.filter((one) => one !== attempt)
  if (others.length === 0) return null
  const choices = others.map((one) => [one.attempt, tOperation.compare.attempt(one.attempt)] as const)
  return (
    <Filter
      label={tOperation.compare.with}
      choices={[['', tOperation.compare.none], ...choices]}
      value={other ?? ''}
      change={(value) =>
        void navigate({
          search: ({ compare: _, ...before }) => ({ ...before, ...(value !== '' && { compare: Number(value) }) }),
        })
      }
    />
  )
}

const AttemptSwitch = ({ node, attempt }: { node: NodeDetail; attempt: number | undefined }) => {
  const navigate = useNavigate({ from: '/operations/$operation_id/nodes/$node_id' })
  const { attempts } = node
  if (attempts.length < 2) return null
  return (
    <Select
      aria-label={tOperation.node.attempts}
      choices={attempts
        .toSorted((a, b) => b.attempt - a.attempt)
        .map((one) => [one.attempt, tOperation.node.attempt_of(one.attempt, attempts.length)] as const)}
      value={attempt}
      change={(value) => void navigate({ search: (before) => ({ ...before, attempt: Number(value) }) })}
    />
  )
}

const InputsOutputs = ({ node }: { node: NodeDetail }) => (
  <div className="flex flex-col gap-4">
    {(
      [
        [tOperation.node.inputs, node.inputs.effective ?? node.spec.with],
        [tOperation.node.outputs, node.outputs],
        [tOperation.node.spec, node.spec],
      ] as const
    ).map(([title, value]) => (
      <section key={title} className="card">
        <h2 className="card-head card-title">{title}</h2>
        <div className="p-4">
          {value === null || value === undefined ? (
            <p className="text-muted">{tOperation.node.no_outputs}</p>
          ) : (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
            <pre className="code" tabIndex={0}>
              {valueText(value)}
            </pre>
          )}
        </div>
      </section>
    ))}
  </div>
)
