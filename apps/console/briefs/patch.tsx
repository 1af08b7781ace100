import { useQuery } from '@tanstack/react-query'
import { Fragment } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { PatchDetail } from '../api/types.ts'
import { clockTime, shown } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { patchQuery } from '../queries/changes.ts'
import { graphQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { NodeLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { statusWord } from '../values/status.tsx'
import { Ticket } from '../values/ticket.tsx'
import { useTimeWords } from '../values/time.tsx'
import { Asks, BriefCard, Said } from '../votes/brief.tsx'
import { callOf, changeWords, nodeNames } from '../votes/patch-words.ts'
import { tChange } from '../words/change.ts'
import { tDecide } from '../words/decide.ts'
import { inSentence } from '../words/frame/language.ts'
import { FirstError } from './first-error.tsx'

type Names = (node_id: string) => string

const SHOWN = 12

type PatchBriefProps = { patch: PatchDetail; read_at: number; nodeName: (id: string) => string }

/** The proposed changes, which the digest covers; below them the failure they fix, their holds, and who decides. */
export const PatchBrief = ({ patch, read_at, nodeName }: PatchBriefProps) => {
  const at = useTimeWords()
  const { zone } = useDisplay()
  const { operation_id, asked, proposer, required, mends, held_nodes, rearmed_gates, ticket } = patch
  const waiting = patch.status === 'awaiting_approval'
  const who = tChange.patch.who(
    patch.votes.filter(({ decision }) => decision === 'approve').length,
    required.quorum,
    required.groups.map(({ group }) => group),
    required.four_eyes ? shown(nameOf(proposer)) : null,
    at(patch.expires_at),
  )
  const links = (ids: readonly string[]) =>
    ids.map((node_id, n) => (
      <Fragment key={node_id}>
        {n > 0 ? ', ' : null}
        <NodeLink operation_id={operation_id} node_id={node_id}>
          {shown(nodeName(node_id))}
        </NodeLink>
      </Fragment>
    ))
  const mended = mends.map(({ node_id, state, attempts, message }, n) => ({
    label: n === 0 ? tChange.patch.mends : '',
    bad: true,
    parts: [
      {
        bad: true,
        text: (
          <>
            {links([node_id])}: {tChange.patch.mended(inSentence(statusWord(state)), attempts)}
            {message === null ? null : ': '}
            <Said>{message ?? ''}</Said>
            <FirstError {...{ operation_id, node_id, attempts }} undo={state === 'compensation_failed'} />
          </>
        ),
      },
    ],
  }))
  const line = (label: string, text: React.ReactNode, is_there: boolean) =>
    is_there ? [{ label, bad: false, parts: [{ text, bad: false }] }] : []
  return (
    <BriefCard
      bound={waiting ? tDecide.gate.brief.bound : tDecide.gate.brief.was_bound}
      context={tDecide.gate.brief.context(clockTime(read_at, zone, true))}
      asks={
        <>
          {tChange.patch.asks(shown(nameOf(proposer)), at(patch.created_at), patch.base_revision)}
          {asked || ticket === null ? null : (
            <>
              {' · '}
              <Ticket ticket={ticket} />
            </>
          )}
        </>
      }
      lines={[
        ...mended,
        ...line(tChange.patch.holds, links(held_nodes.slice(0, SHOWN)), waiting && held_nodes.length > 0),
        ...line(tDecide.gate.page, tChange.patch.again(rearmed_gates), rearmed_gates.length > 0),
        ...line(tDecide.gate.brief.who, who, waiting),
      ]}
    >
      {asked ? (
        <p>
          <Asks name={asked.proposer.name} reason={asked.reason} ticket={asked.ticket} />
        </p>
      ) : null}
      <PatchChanges changes={patch.changes} nameOf={nodeName} />
    </BriefCard>
  )
}

/** The same of a patch that is not read yet. */
export const UnreadPatch = ({ operation_id, id }: { operation_id: string; id: string }) => {
  useTopic(`operation:${operation_id}`)
  const { data: patch, dataUpdatedAt, error, refetch } = useQuery(patchQuery(operation_id, id))
  const nodes = useQuery(graphQuery(operation_id)).data?.nodes
  if (patch) return <PatchBrief patch={patch} read_at={dataUpdatedAt} nodeName={nodeNames(nodes, patch.changes)} />
  return error ? <Failure error={error} retry={() => void refetch()} /> : null
}

/** The proposed changes in order; a press shows each in full. */
const PatchChanges = ({ changes, nameOf }: { changes: readonly unknown[]; nameOf: Names }) => (
  <ol className="flex flex-col">
    {changes.map((change, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the changes of a patch never move
      <li key={at} className="flex gap-3 border-b border-line py-2 first:pt-0 last:border-0 last:pb-0">
        <span className="w-6 shrink-0 text-right text-muted tabular-nums">{at + 1}</span>
        <details className="min-w-0 flex-1">
          <summary className="wrap-anywhere">
            {changeWords(change, nameOf)}
            {callOf(change) === null ? null : <code className="block text-muted">{callOf(change)}</code>}
          </summary>
          <pre className="code mt-2">{shown(JSON.stringify(change, null, 2))}</pre>
        </details>
      </li>
    ))}
  </ol>
)
