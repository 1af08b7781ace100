import type { GateSubject } from '../api/types.ts'
import { valueText } from '../values/diff.tsx'
import { type Fact, Facts } from '../values/facts.tsx'
import { Ticket } from '../values/ticket.tsx'
import { Reason } from '../votes/brief.tsx'
import { tChange } from '../words/change.ts'
import { quoted } from '../words/frame/language.ts'
import { tCommand } from '../words/operations/command.ts'

/** An intervention that needs a second person: its effect if approved, the requester, and the reason. */
export const Asked = ({ intervention }: { intervention: NonNullable<GateSubject['intervention']> }) => {
  const { type, node_id, payload, reason, ticket, author } = intervention
  const words = tChange.intervene.types[type]
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">
        {words?.word ?? type.replaceAll('_', ' ')}
        {node_id === null ? null : <code className="ml-2 font-normal">{node_id}</code>}
      </h3>
      {words ? <p>{words.effect}</p> : null}
      <Facts
        facts={[
          [tCommand.reason, reason && <Reason key="reason">{quoted(reason)}</Reason>],
          [tChange.intervene.by, author.name],
          [tChange.intervene.ticket, ticket && <Ticket key="ticket" ticket={ticket} />],
          ...Object.entries(payload).map(([member, value]): Fact => [nameOf(member), code(value)]),
        ]}
      />
    </section>
  )
}

const nameOf = (member: string): string =>
  member === 'was'
    ? tChange.intervene.asked_on
    : (tChange.intervene.fields[member as keyof typeof tChange.intervene.fields]?.label ?? member)

const code = (value: unknown) => <pre className="code">{valueText(value)}</pre>
