import { useQuery } from '@tanstack/react-query'
import { Trash2 } from 'lucide-react'
import { useEffect, useId, useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { dryRun } from '../api/commands.ts'
import type { Patch, PatchChange } from '../api/types.ts'
import { IconButton } from '../forms/choices.tsx'
import { Card } from '../ui/card.tsx'
import { ProblemText } from '../ui/failure.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { changeWords } from '../votes/patch-words.ts'
import { tChange } from '../words/change.ts'
import { quoted } from '../words/frame/language.ts'
import { PatchDiff } from './diff.tsx'
import { placeViolations, readDraft } from './drafts.ts'
import { PatchGraph } from './graph.tsx'

/** One change in the editor. Its text is authoritative, so that incomplete JSON is kept. */
export type Draft = { id: number; text: string }
let made = 0
export const draftFrom = (change: PatchChange): Draft => {
  made += 1
  return { id: made, text: JSON.stringify(change, null, 2) }
}

/** The server's answer about a patch that has not been proposed yet. */
export type PatchEffect = Pick<Patch, 'diff_graph' | 'held_nodes' | 'rearmed_gates'>
export type Check = { state: 'none' } | { state: 'checking' } | Sound | Unsound
/** Sound at this revision, with these changes. */
type Sound = { state: 'sound'; effect: PatchEffect; changes: PatchChange[]; base_revision: number }
type Unsound = { state: 'refused'; problem: Problem }

const REST_MS = 400

/** The drafts as changes; `undefined` while one of them is invalid. */
export const changesOf = (drafts: readonly Draft[]): PatchChange[] | undefined => {
  const read = drafts.map(({ text }) => readDraft(text))
  return read.every((one) => 'change' in one) ? read.map((one) => (one as { change: PatchChange }).change) : undefined
}

/** Asks the server for the effect of these changes on the graph's revision, after a pause in typing. */
export const usePatchCheck = (
  operation_id: string,
  base_revision: number,
  changes: PatchChange[] | undefined,
  now: number,
): Check => {
  const asked = changes === undefined || changes.length === 0 ? '' : JSON.stringify([base_revision, changes, now])
  const [rested, setRested] = useState(asked)
  useEffect(() => {
    const timer = setTimeout(() => setRested(asked), REST_MS)
    return () => clearTimeout(timer)
  }, [asked])
  const reply = useQuery({
    queryKey: ['patch-check', operation_id, rested],
    enabled: rested !== '',
    staleTime: 0,
    queryFn: async () => {
      const [base_revision, changes] = JSON.parse(rested) as [number, PatchChange[]]
      const outcome = await dryRun<PatchEffect>({
        path: `/v1/operations/${encodeURIComponent(operation_id)}/patches`,
        body: { base_revision, changes, reason: '-' },
      })
      return { ...outcome, base_revision, changes }
    },
  }).data
  if (asked === '') return { state: 'none' }
  if (asked !== rested || reply === undefined) return { state: 'checking' }
  return 'effect' in reply ? { state: 'sound', ...reply } : { state: 'refused', problem: reply.problem }
}

type DraftListProps = {
  drafts: readonly Draft[]
  check: Check
  change: (id: number, text: string) => void
  remove: (id: number) => void
  nameOf: (node_id: string) => string
}

/** The changes as a list, each in words and as JSON, with its faults below. */
export const DraftList = ({ drafts, check, change, remove, nameOf }: DraftListProps) => {
  const placed = placeViolations(violationsOf(check), changesOf(drafts) ?? [])
  return (
    <Card title={tChange.patch.editor.changes}>
      {drafts.length === 0 ? <p className="p-4 text-muted">{tChange.patch.editor.none}</p> : null}
      <ol className="flex flex-col">
        {drafts.map((draft, at) => (
          <DraftItem
            key={draft.id}
            at={at}
            draft={draft}
            wrong={(placed.at.get(at) ?? []).map(({ message }) => message)}
            nameOf={nameOf}
            change={(text) => change(draft.id, text)}
            remove={() => remove(draft.id)}
          />
        ))}
      </ol>
    </Card>
  )
}

type DraftItemProps = {
  at: number
  draft: Draft
  wrong: string[]
  nameOf: (node_id: string) => string
  change: (text: string) => void
  remove: () => void
}

const DraftItem = ({ at, draft, wrong, nameOf, change, remove }: DraftItemProps) => {
  const id = useId()
  const read = readDraft(draft.text)
  const faults =
    'fault' in read
      ? [read.fault === '' ? tChange.patch.editor.not_object : tChange.patch.editor.not_json(read.fault)]
      : wrong
  return (
    <li className="flex gap-3 border-b border-line px-4 py-3 last:border-0">
      <span className="w-5 shrink-0 text-right text-muted tabular-nums">{at + 1}</span>
      <div className="min-w-0 flex-1">
        <p className="font-medium wrap-anywhere">
          {'change' in read ? changeWords(read.change, nameOf) : tChange.patch.unknown_change}
        </p>
        <details>
          <summary className="py-1 text-table text-muted">{tChange.patch.editor.edit}</summary>
          <textarea
            className="input mono"
            rows={Math.min(20, draft.text.split('\n').length + 1)}
            spellCheck={false}
            value={draft.text}
            onChange={(event) => change(event.target.value)}
            aria-label={tChange.patch.editor.json(at + 1)}
            aria-invalid={faults.length > 0}
            aria-describedby={`${id}-faults`}
          />
        </details>
        <ul id={`${id}-faults`} className="field-error">
          {[...new Set(faults)].map((fault) => (
            <li key={fault} lang={'fault' in read ? undefined : 'en'}>
              {fault}
            </li>
          ))}
        </ul>
      </div>
      <IconButton icon={Trash2} word={tChange.patch.editor.remove(at + 1)} look="quiet self-start" onClick={remove} />
    </li>
  )
}

type PatchOutlookProps = {
  operation_id: string
  check: Check
  changes: PatchChange[] | undefined
  nameOf: (node_id: string) => string
}

/** The effect of the patch according to the server: the changed graph, drawn, or every reason why it could not run. */
export const PatchOutlook = ({ operation_id, check, changes, nameOf }: PatchOutlookProps) => {
  const last = useRef<Sound>(undefined)
  if (check.state === 'sound') last.current = check
  if (check.state === 'none') return null
  // The last answer stays until the next one arrives, and is marked as old.
  const shown = check.state === 'sound' ? check : check.state === 'checking' ? last.current : undefined
  const violations = violationsOf(check)
  const { at } = placeViolations(violations, changes ?? [])
  const placeOf = (violation: Violation) => {
    const index = [...at].find(([, list]) => list.includes(violation))?.[0]
    return index === undefined ? violation.pointer : tChange.patch.editor.at_change(index + 1)
  }
  return (
    <Card title={tChange.patch.editor.outcome}>
      <div className="flex flex-col gap-3 p-4" aria-live="polite">
        {check.state === 'checking' ? (
          <p className="text-muted">
            {tChange.patch.editor.checking} {shown ? tChange.patch.editor.before_this : null}
          </p>
        ) : check.state === 'sound' ? (
          <>
            <Verdict shape="check" tone="ok">
              {tChange.patch.editor.sound} {tChange.patch.editor.effect(check.effect.held_nodes.length)}
            </Verdict>
            {check.effect.rearmed_gates.length > 0 ? <p>{tChange.patch.rearmed(check.effect.rearmed_gates)}</p> : null}
          </>
        ) : violations.length > 0 ? (
          <>
            <Verdict shape="octagon" tone="bad">
              {tChange.patch.editor.unsound(violations.length)}
            </Verdict>
            <ul className="flex flex-col gap-1">
              {violations.map((violation) => (
                <li key={violation.pointer + violation.code} className="wrap-anywhere">
                  <span className="text-muted">{placeOf(violation)}:</span> {subjectOf(violation.pointer)}
                  <span lang="en">{violation.message}</span>
                </li>
              ))}
            </ul>
          </>
        ) : (
          <>
            <Verdict shape="octagon" tone="bad">
              {tChange.patch.editor.refused}
            </Verdict>
            <ProblemText problem={check.problem} />
          </>
        )}
      </div>
      {shown ? (
        <div className="flex flex-col gap-3 px-4 pb-4">
          <PatchGraph
            operation_id={operation_id}
            base_revision={shown.base_revision}
            changes={shown.changes}
            diff={shown.effect.diff_graph}
          />
          <PatchDiff diff={shown.effect.diff_graph} changes={shown.changes} nameOf={nameOf} />
        </div>
      ) : null}
    </Card>
  )
}

type Violation = NonNullable<Problem['violations']>[number]
const violationsOf = (check: Check): Violation[] => (check.state === 'refused' ? (check.problem.violations ?? []) : [])

/** The node or gate that a pointer names, quoted, as the subject of the following sentence. */
const subjectOf = (pointer: string): string => {
  const [, part, id] = pointer.split('/')
  return (part === 'nodes' || part === 'gates') && id ? `${quoted(id)} ` : ''
}

type VerdictProps = { shape: 'check' | 'octagon'; tone: 'ok' | 'bad'; children: React.ReactNode }

const Verdict = ({ shape, tone, children }: VerdictProps) => (
  <p className="flex gap-2 font-medium">
    <ShapeIcon shape={shape} tone={tone} beside />
    <span>{children}</span>
  </p>
)
