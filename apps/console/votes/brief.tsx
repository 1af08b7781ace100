import { Link } from '@tanstack/react-router'
import { Fragment, useState } from 'react'
import { byActionWeight } from '../../shared/contracts/action-weight.ts'
import type { Preview } from '../../shared/contracts/client/preview.ts'
import type { Gate, GateSubject } from '../api/types.ts'
import { shown } from '../kit/format.ts'
import { FieldDiffs, isPreview } from '../values/diff.tsx'
import { OperationLink } from '../values/links.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { Ticket } from '../values/ticket.tsx'
import { tDecide } from '../words/decide.ts'
import { quoted } from '../words/frame/language.ts'
import { t } from '../words/index.ts'
import { intervene } from '../words/operations/intervene.ts'
import { whereWords } from './context.ts'
import { inOrder, placesOf, stepOf } from './releases.ts'
import type { Line } from './targets.ts'

const words = tDecide.gate.brief
const FIELDS = 3
const STEPS = 6

/** Text from a person or a target, isolated so that it cannot change the direction of the text around it. */
export const Said = ({ children }: { children: string }) => <bdi>{shown(children)}</bdi>

/** More characters than three lines of a brief hold. */
const LONG = 320

/** A reason; a long one shows three lines until the rest is asked for, so that the decision stays in view. */
export const Reason = ({ children }: { children: string }) => {
  const [whole, setWhole] = useState(children.length <= LONG)
  if (whole) return <Said>{children}</Said>
  return (
    <>
      <span className="line-clamp-3 print:line-clamp-none">
        <Said>{children}</Said>
      </span>
      <button type="button" className="text-accent underline print:hidden" onClick={() => setWhole(true)}>
        {t.nav.more}
      </button>
    </>
  )
}

type BriefCardProps = {
  bound: string
  context: string
  lines: readonly Drawn[]
  /** The line that says who asks and why. */
  asks?: React.ReactNode
  children: React.ReactNode
}

/** A decision in a few lines: above, the parts that the digest covers; below, the context, which may change. */
export const BriefCard = ({ bound, context, lines, asks, children }: BriefCardProps) => (
  <section className="card" aria-label={words.title}>
    <div className="brief-bound">
      <h2 className="brief-label">{bound}</h2>
      {children}
    </div>
    <div className="p-4">
      <h2 className="brief-label">{context}</h2>
      <dl className="brief">
        {lines
          .filter(({ bad }) => bad)
          .map((line) => (
            <BriefLine key={line.label} line={line} />
          ))}
        {asks ? (
          <div>
            <dt>{words.asks}</dt>
            <dd>{asks}</dd>
          </div>
        ) : null}
        {lines
          .filter(({ bad }) => !bad)
          .map((line) => (
            <BriefLine key={line.label} line={line} />
          ))}
      </dl>
    </div>
  </section>
)

type DrawnPart = Omit<Line['parts'][number], 'text'> & { text: React.ReactNode }
type Drawn = Omit<Line, 'parts' | 'news'> & { parts: readonly DrawnPart[] }
export const BriefLine = ({ line: { label, parts, bad } }: { line: Drawn }) => (
  <div>
    <dt>{label}</dt>
    <dd className={bad ? 'flex gap-2' : undefined}>
      {bad ? <ShapeIcon shape="octagon" tone="bad" beside /> : null}
      <span>
        {parts.map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a line never move
          <Fragment key={at}>
            {at > 0 ? ' · ' : null}
            <PartText part={part} />
          </Fragment>
        ))}
      </span>
    </dd>
  </div>
)

const PartText = ({ part: { text, bad, operation_id } }: { part: DrawnPart }) => {
  const look = bad ? 'font-medium text-bad' : ''
  if (operation_id === undefined) return bad ? <span className={look}>{text}</span> : text
  return (
    <OperationLink id={operation_id} className={`underline ${look}`}>
      {text}
    </OperationLink>
  )
}

type AsksProps = { name: string; reason: string; ticket: string | null; children?: React.ReactNode }

/** Who asks, the reason and the ticket in their words. */
export const Asks = ({ name, reason, ticket, children }: AsksProps) => (
  <>
    <Said>{name}</Said>: <Reason>{quoted(reason)}</Reason>
    {ticket === null ? null : (
      <>
        {' · '}
        <Ticket ticket={ticket} />
      </>
    )}
    {children}
  </>
)

type AskedProps = { asked: Omit<NonNullable<GateSubject['asked']>, 'title'>; plan_id: string | undefined }

/** The same of an operation, with its plan. */
export const Asked = ({ asked: { requester, plan_hash, ...why }, plan_id }: AskedProps) => (
  <Asks name={requester.name} {...why}>
    {' · '}
    {plan_id === undefined ? (
      words.plan(plan_hash.slice(7, 13))
    ) : (
      <Link to="/plans/$plan_id" params={{ plan_id }} search={{ tab: 'changes' }} title={plan_hash}>
        {words.plan(plan_hash.slice(7, 13))}
      </Link>
    )}
  </Asks>
)

type ChangeLineProps = { subject: GateSubject; order?: readonly string[] | undefined }

/** The subject of the decision, as the digest covers it, in one line: the count, the fields that change, the steps. */
export const ChangeLine = ({ subject, order = [] }: ChangeLineProps) => {
  const { changes, intervention } = subject
  if (intervention) {
    const word = intervene.types[intervention.type]?.word ?? intervention.type.replaceAll('_', ' ')
    return (
      <p className="font-semibold">
        {word} {intervention.node_id ? <code className="font-normal">{intervention.node_id}</code> : null}
      </p>
    )
  }
  const alike = mostAlike(changes)
  const [first] = alike
  const others = changes.length - alike.length
  const releases = inOrder(subject, order)
  const names = [...new Set(releases.filter(({ target_id }) => target_id !== null).map(stepOf))]
  const count = subject.releases_count ?? releases.length
  return (
    <div className="flex flex-col gap-1">
      <p>
        <strong className="font-semibold">
          {changes.length > 0 ? words.changes(changes.length) : words.step_count(count)}
        </strong>
        {changes.length === 0 ? null : (
          <span className="text-muted">
            : {names.length > 0 && names.length <= STEPS ? names.join(', ') : words.step_count(count)}
          </span>
        )}
      </p>
      {subject.v === 2 ? <p>{whereWords(placesOf(subject))}</p> : null}
      {first ? <FieldDiffs fields={first.fields.slice(0, FIELDS)} /> : null}
      {first && first.fields.length > FIELDS ? (
        <p className="text-muted">{words.more_fields(first.fields.length - FIELDS)}</p>
      ) : null}
      {others > 0 ? <p className="text-muted">{words.more_changes(others)}</p> : null}
      {subject.bound_outputs.map(({ pointer, value }) =>
        isPreview(value) ? (
          <p key={pointer}>
            <Said>{value.tool}</Said>: {actionsOf(value)}
          </p>
        ) : null,
      )}
    </div>
  )
}

/** Deletes first. */
const actionsOf = ({ counts, unknowns, no_change }: Preview): string =>
  no_change
    ? tDecide.gate.preview_none
    : [
        ...Object.entries(counts)
          .filter(([, n]) => n > 0)
          .sort(([a], [b]) => byActionWeight(a, b))
          .map(([action, n]) => words.counted(n, t.change[action] ?? action)),
        ...(unknowns > 0 ? [words.unknowns(unknowns)] : []),
      ].join(', ')

/** The text of the approval button: verb and object. */
export const approveWords = ({ subject }: Pick<Gate, 'subject'>): string =>
  subject === null || subject.intervention
    ? tDecide.gate.approve
    : subject.changes.length > 0
      ? tDecide.gate.approve_count(subject.changes.length)
      : tDecide.gate.approve_steps(subject.releases_count ?? subject.releases.length)

/** The largest group of resources with the same change of the same fields. */
const mostAlike = (changes: GateSubject['changes']): GateSubject['changes'] => {
  const groups = Map.groupBy(changes, ({ change, fields }) => JSON.stringify([change, fields]))
  return [...groups.values()].reduce<GateSubject['changes']>(
    (most, group) => (group.length > most.length ? group : most),
    [],
  )
}
