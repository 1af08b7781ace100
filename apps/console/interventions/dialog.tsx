import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { serverNow } from '../api/live.ts'
import { mayPress, Reason } from '../command/allowed.tsx'
import { CommandDialog } from '../command/dialog.tsx'
import { Radios } from '../forms/select.tsx'
import { TicketField, ticketOf } from '../forms/ticket.tsx'
import { confirmInProd } from '../kit/environment.ts'
import { useTyped } from '../session/typed.ts'
import { statusWord } from '../values/status.tsx'
import { tChange } from '../words/change.ts'
import { tOperation } from '../words/operation.ts'
import { tCommand } from '../words/operations/command.ts'
import { fieldsOf, InterveneField, isAsked, payloadOf, placeholders, type Values } from './fields.tsx'
import type { Intervened } from './offered.ts'

type Effect = { from?: string; rearmed_gates?: string[]; status?: string; deadline_at?: string; resources?: string[] }
type Reply = { intervention?: { status?: string; gate_id?: string | null } }

/**
 * Changes a node, or the whole operation, outside its plan: the type, its fields, the reason, the ticket. A high risk
 * leads to a gate at which another person must approve it.
 */
export const InterveneDialog = ({ subject: now, close }: { subject: Intervened; close: () => void }) => {
  /** As the person read it: a finding about one outcome must not be sent for the next. */
  const [subject] = useState(now)
  const client = useQueryClient()
  const navigate = useNavigate()
  const { operation_id, node_id } = subject
  const { offered } = now
  const path = `/v1/operations/${encodeURIComponent(operation_id)}/interventions`
  const place = `${path} ${node_id ?? ''}`
  const [type, setType] = useTyped(`${place} type`, offered.find(mayPress)?.action ?? offered[0]?.action ?? '')
  const [typed, setTyped] = useTyped<Values>(`${place} typed`, {})
  const [ticket, setTicket] = useTyped(`${place} ticket`, '')
  const [opened] = useState(serverNow)
  const { fields, values } = fieldsOf(type, typed, subject)
  const { payload, faults } = payloadOf(fields, values, opened)
  const words = tChange.intervene.types[type]
  const refresh = () => {
    for (const noun of ['operation', 'graph', 'nodes', 'node', 'timeline', 'gate'])
      void client.invalidateQueries({ queryKey: [noun, operation_id] })
  }
  const bodyWith = (given: Record<string, unknown>) => ({
    type,
    ...(node_id === undefined ? {} : { node_id }),
    payload: given,
    ...ticketOf(ticket),
  })
  return (
    <CommandDialog<Effect, Reply>
      title={tChange.intervene.title(subject.name)}
      button={words?.button ?? tChange.intervene.button}
      danger
      {...(type === 'trigger_compensation' ? confirmInProd(operation_id) : {})}
      command={{ path, body: bodyWith(payload) }}
      // An empty field does not block the preview of the effect.
      preview={isAsked(faults) ? { path, body: bodyWith({ ...placeholders(fields), ...payload }) } : null}
      text={{ name: 'reason', label: tCommand.reason, needed: true, missing: tCommand.reason_needed }}
      blocked={faults.size > 0}
      why={movedSince(subject, now, payload)}
      consequences={(effect) => <Consequences effect={effect} words={words?.effect ?? ''} />}
      refused={refresh}
      done={(reply) => {
        refresh()
        const { status, gate_id } = reply.intervention ?? {}
        if (status === 'awaiting_second_person' && gate_id)
          void navigate({ to: '/operations/$operation_id/gates/$gate_id', params: { operation_id, gate_id } })
      }}
      close={close}
    >
      <Types offered={offered} type={type} choose={setType} />
      {fields.map((field) => (
        <InterveneField
          key={`${type} ${field}`}
          field={field}
          value={values[field] ?? ''}
          typed={typed[field] !== undefined}
          fault={faults.get(field)}
          values={values}
          subject={subject}
          change={(value) =>
            setTyped((before) => ({ ...before, ...(field === 'of' ? { id: undefined as never } : {}), [field]: value }))
          }
        />
      ))}
      <TicketField value={ticket} change={setTicket} />
    </CommandDialog>
  )
}

/** Why the command must not be sent: since the dialog was opened, the node or the chosen gate has moved on. */
const movedSince = (
  { seen, gates }: Intervened,
  now: Intervened,
  { gate_id, of, id }: Record<string, unknown>,
): string | undefined => {
  if (seen !== now.seen) return tOperation.operation.retry.moved
  const isChosen = ({ value }: { value: string }) => value === gate_id || (of === 'gate' && value === id)
  return gates.some(isChosen) && !now.gates.some(isChosen) ? tOperation.operation.retry.decided : undefined
}

type TypesProps = { offered: Intervened['offered']; type: string; choose: (type: string) => void }

/** The interventions that the server offers, and why some are not possible. */
const Types = ({ offered, type, choose }: TypesProps) => (
  <Radios
    label={tChange.intervene.what}
    choices={offered.map((one) => [one.action, <Offered key={one.action} action={one} />])}
    isOff={(action) => !mayPress(offered.find((one) => one.action === action))}
    value={type}
    change={choose}
  />
)

const Offered = ({ action }: { action: Intervened['offered'][number] }) => (
  <span className={`flex flex-col ${mayPress(action) ? '' : 'text-muted'}`}>
    {tChange.intervene.types[action.action]?.word ?? action.action.replaceAll('_', ' ')}
    {mayPress(action) || !action.reason ? null : (
      <span className="text-table">
        <Reason action={action} />
      </span>
    )}
  </span>
)

const Consequences = ({ effect, words }: { effect: Effect; words: string }) => {
  const { from, rearmed_gates = [], status, resources = [] } = effect
  return (
    <>
      <p>
        {from ? tChange.intervene.was(statusWord(from)) : null} {words}
      </p>
      {resources.length > 0 ? <p>{tChange.intervene.released(resources)}</p> : null}
      {rearmed_gates.length > 0 ? <p>{tOperation.operation.retry.gates(rearmed_gates)}</p> : null}
      {status === 'awaiting_second_person' ? <p className="font-medium">{tChange.intervene.second}</p> : null}
    </>
  )
}
