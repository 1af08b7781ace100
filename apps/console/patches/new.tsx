import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Suspense, useEffect, useRef, useState } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { Graph, Operation, PatchChange } from '../api/types.ts'
import { actionOf, mayPress, WhyNot } from '../command/allowed.tsx'
import { Leaving } from '../command/leaving.tsx'
import { Button } from '../forms/button.tsx'
import { TicketField, ticketOf } from '../forms/ticket.tsx'
import { patchQuery } from '../queries/changes.ts'
import { graphQuery, operationQuery } from '../queries/operations.ts'
import { useTyped } from '../session/typed.ts'
import { UnreadPage } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Heading, Page } from '../ui/page.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { nodeNames } from '../votes/patch-words.ts'
import { tChange } from '../words/change.ts'
import { tCommand } from '../words/operations/command.ts'
import { PatchBuilder } from './builder.tsx'
import { changesOf, type Draft, DraftList, draftFrom, PatchOutlook, usePatchCheck } from './editor.tsx'

const CommandDialog = lazyPart(() => import('../command/dialog.tsx').then((part) => ({ default: part.CommandDialog })))

/** Composes a patch from ready-made choices and JSON, and checks it against the running graph after every change. */
export const PatchNewPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id/patches/new' })
  const { from } = useSearch({ from: '/shell/operations/$operation_id/patches/new' })
  useTopic(`operation:${operation_id}`)
  const graph = useQuery(graphQuery(operation_id))
  const operation = useQuery(operationQuery(operation_id))
  const earlier = useQuery({ ...patchQuery(operation_id, from ?? ''), enabled: from !== undefined })
  const ready = graph.data && operation.data && (from === undefined || earlier.data)
  if (!ready || !graph.data || !operation.data) {
    const query = [graph, operation, earlier].find(({ isError }) => isError) ?? graph
    return <UnreadPage title={tChange.patch.editor.title} query={query} noun="operation" />
  }
  const rebase = earlier.data?.rebase ?? earlier.data
  return (
    <Editor
      key={operation_id}
      graph={graph.data}
      operation={operation.data}
      start={(rebase?.changes ?? []) as PatchChange[]}
      base={earlier.data?.rebase?.base_revision ?? graph.data.plan_revision}
    />
  )
}

type EditorProps = { graph: Graph; operation: Operation; start: PatchChange[]; base: number }

/** The drafts of a patch; `added` counts the additions. */
const useDrafts = (operation_id: string, start: PatchChange[]) => {
  const [drafts, setDrafts] = useTyped<Draft[]>(operation_id, () => start.map(draftFrom))
  const [added, setAdded] = useState(0)
  return {
    drafts,
    added,
    add: (more: PatchChange[]) => {
      setDrafts((before) => [...before, ...more.map(draftFrom)])
      setAdded((n) => n + 1)
    },
    change: (draft: number, text: string) =>
      setDrafts((before) => before.map((one) => (one.id === draft ? { ...one, text } : one))),
    remove: (draft: number) => setDrafts((before) => before.filter((one) => one.id !== draft)),
  }
}

const Editor = ({ graph, operation, start, base: begun }: EditorProps) => {
  const { operation_id } = operation
  const { node } = useSearch({ from: '/shell/operations/$operation_id/patches/new' })
  const { drafts, added, add, change, remove } = useDrafts(operation_id, start)
  const [base, setBase] = useTyped(`${operation_id} base`, begun)
  const [ticket, setTicket] = useTyped(`${operation_id} ticket`, '')
  const [asking, setAsking] = useState(false)
  const sent = useRef(false)
  const changes = changesOf(drafts)
  const check = usePatchCheck(operation_id, base, changes, graph.plan_revision)
  const nameOf = nodeNames(graph.nodes, changes)
  const action = actionOf(operation, 'propose_patch')
  const ready = mayPress(action) && check.state === 'sound'
  const list = useRef<HTMLDivElement>(null)
  // Brings a new change into view; the focus stays where it is.
  useEffect(() => {
    if (added > 0) list.current?.scrollIntoView({ block: 'nearest' })
  }, [added])
  return (
    <Page>
      <Intro operation={operation} base={base} />
      {graph.plan_revision === base ? null : (
        <MovedOn now={graph.plan_revision} base={base} rebase={() => setBase(graph.plan_revision)} />
      )}
      <PatchBuilder graph={graph} operation_id={operation_id} {...(node === undefined ? {} : { node })} add={add} />
      <div ref={list}>
        <DraftList drafts={drafts} check={check} nameOf={nameOf} change={change} remove={remove} />
      </div>
      <PatchOutlook operation_id={operation_id} check={check} changes={changes} nameOf={nameOf} />
      <div className="flex flex-wrap items-end gap-3">
        <TicketField value={ticket} change={setTicket} />
        <Button look="main" aria-disabled={!ready} onClick={() => ready && setAsking(true)}>
          {tChange.patch.editor.submit}
        </Button>
        <WhyNot actions={[action]} />
      </div>
      {asking && changes ? (
        <Propose
          operation_id={operation_id}
          body={{ base_revision: base, changes, ...ticketOf(ticket) }}
          sent={() => {
            sent.current = true
          }}
          close={() => setAsking(false)}
        />
      ) : null}
      <Leaving isLost={() => drafts.length > 0 && !sent.current} />
    </Page>
  )
}

const Intro = ({ operation: { operation_id, title }, base }: { operation: Operation; base: number }) => (
  <>
    <p className="text-muted">
      <Link to="/operations/$operation_id/patches" params={{ operation_id }}>
        {title}
      </Link>
    </p>
    <div className="flex flex-col gap-1">
      <Heading title={tChange.patch.editor.title}>{tChange.patch.editor.title}</Heading>
      <p>{tChange.patch.editor.intro(title, base)}</p>
      <p className="max-w-text text-muted">{tChange.patch.what_it_is}</p>
    </div>
  </>
)

const MovedOn = ({ now, base, rebase }: { now: number; base: number; rebase: () => void }) => (
  <div role="alert" className="flex flex-wrap items-center gap-3 rounded-card bg-wait-soft p-4 text-wait">
    <ShapeIcon shape="diamond" tone="wait" />
    <p>{tChange.patch.editor.moved(now, base)}</p>
    <Button onClick={rebase} word={tChange.patch.editor.rebase(now)} />
  </div>
)

type ProposeProps = { operation_id: string; body: Record<string, unknown>; sent: () => void; close: () => void }

/** Asks for the reason, proposes the patch and opens its page. */
const Propose = ({ operation_id, body, sent, close }: ProposeProps) => {
  const navigate = useNavigate()
  const client = useQueryClient()
  return (
    <Suspense fallback={null}>
      <CommandDialog
        title={tChange.patch.editor.confirm_title}
        button={tChange.patch.editor.submit}
        command={{ path: `/v1/operations/${encodeURIComponent(operation_id)}/patches`, body }}
        text={{ name: 'reason', label: tCommand.reason, needed: true, missing: tCommand.reason_needed }}
        consequences={(effect) => (
          <p>{tChange.patch.editor.effect((effect as { held_nodes: string[] }).held_nodes.length)}</p>
        )}
        done={(reply) => {
          sent()
          const { patch_id } = reply as { patch_id: string }
          for (const noun of ['patches', 'operation', 'graph'])
            void client.invalidateQueries({ queryKey: [noun, operation_id] })
          void navigate({ to: '/operations/$operation_id/patches/$patch_id', params: { operation_id, patch_id } })
        }}
        close={close}
      />
    </Suspense>
  )
}
