import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useId, useState } from 'react'
import type { NodeDetail } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { mayPress } from './allowed-action.tsx'
import { CommandDialog } from './command-dialog.tsx'
import { interventionsOf } from './interventions.ts'
import { statusWord } from './status.tsx'

type Reply = { intervention?: { status?: string; gate_id?: string | null } }
type Field = 'outputs' | 'note' | 'message' | 'input_overrides'

/** What each intervention says beside its reason. One that this release does not know takes its payload as JSON. */
const FIELDS: Record<string, readonly Field[]> = {
  skip: [],
  mark_succeeded: ['outputs', 'note'],
  mark_failed: ['message'],
  mark_compensated: ['note'],
  set_output: ['outputs'],
  set_input: ['input_overrides'],
  trigger_compensation: [],
}

/** A person does to a node what its plan does not say: what, with what it needs, why, and under which ticket. */
export const InterveneDialog = ({ node, close }: { node: NodeDetail; close: () => void }) => {
  const id = useId()
  const client = useQueryClient()
  const navigate = useNavigate()
  const offered = interventionsOf(node)
  const [type, setType] = useState(offered.find(mayPress)?.action ?? offered[0]?.action ?? '')
  const [values, setValues] = useState<Partial<Record<Field | 'payload', string>>>({})
  const [ticket, setTicket] = useState('')
  const fields: readonly (Field | 'payload')[] = FIELDS[type] ?? ['payload']
  const { payload, faults } = payloadOf(fields, values)
  const refresh = () => {
    for (const noun of ['operation', 'graph', 'nodes', 'node', 'timeline'])
      void client.invalidateQueries({ queryKey: [noun, node.operation_id] })
  }
  const path = `/v1/operations/${encodeURIComponent(node.operation_id)}/interventions`
  const bodyWith = (given: Record<string, unknown>) => ({
    type,
    node_id: node.node_id,
    payload: given,
    ...(ticket.trim() === '' ? {} : { ticket: ticket.trim() }),
  })
  return (
    <CommandDialog<{ from?: string; rearmed_gates?: string[] }, Reply>
      title={t.intervene.title(node.name)}
      button={t.intervene.types[type]?.button ?? t.intervene.button}
      danger
      command={{ path, body: bodyWith(payload) }}
      // What is not typed yet does not keep the server from saying what would happen.
      preview={{ path, body: bodyWith({ ...placeholders(fields), ...payload }) }}
      text={{ name: 'reason', label: t.command.reason, needed: true, missing: t.command.reason_needed }}
      blocked={faults.size > 0}
      consequences={({ from, rearmed_gates = [] }) => (
        <>
          <p>
            {from ? t.intervene.was(statusWord(from)) : null} {t.intervene.types[type]?.effect ?? ''}
          </p>
          {rearmed_gates.length > 0 ? <p>{t.command.retry.gates(rearmed_gates)}</p> : null}
        </>
      )}
      refused={refresh}
      done={(reply) => {
        refresh()
        const { status, gate_id } = reply.intervention ?? {}
        if (status === 'awaiting_second_person' && gate_id)
          void navigate({
            to: '/operations/$operation_id/gates/$gate_id',
            params: { operation_id: node.operation_id, gate_id },
          })
      }}
      close={close}
    >
      <fieldset className="flex flex-col gap-2">
        <legend className="label">{t.intervene.what}</legend>
        {offered.map((one) => (
          <label key={one.action} className="flex items-start gap-2">
            <input
              type="radio"
              name={`${id}-type`}
              className="mt-1"
              checked={type === one.action}
              disabled={!mayPress(one)}
              onChange={() => setType(one.action)}
            />
            <span className={`flex flex-col ${mayPress(one) ? '' : 'text-muted'}`}>
              {t.intervene.types[one.action]?.word ?? one.action.replaceAll('_', ' ')}
              {mayPress(one) || !one.reason ? null : <span className="text-table">{one.reason}</span>}
            </span>
          </label>
        ))}
      </fieldset>
      {fields.map((field) => (
        <div key={field}>
          <label className="label" htmlFor={`${id}-${field}`}>
            {t.intervene.fields[field].label}
          </label>
          <textarea
            id={`${id}-${field}`}
            className={`input ${isJson(field) ? 'mono' : ''}`}
            rows={isJson(field) ? 5 : 2}
            spellCheck={!isJson(field)}
            value={values[field] ?? ''}
            onChange={(event) => setValues((before) => ({ ...before, [field]: event.target.value }))}
            aria-required="true"
            aria-invalid={values[field] !== undefined && faults.has(field)}
            aria-describedby={`${id}-${field}-note`}
          />
          <p
            id={`${id}-${field}-note`}
            className={values[field] !== undefined && faults.has(field) ? 'field-error' : 'text-meta text-muted'}
          >
            {values[field] === undefined
              ? t.intervene.fields[field].note
              : (faults.get(field) ?? t.intervene.fields[field].note)}
          </p>
        </div>
      ))}
      <div>
        <label className="label" htmlFor={`${id}-ticket`}>
          {t.patch.editor.ticket}
        </label>
        <input
          id={`${id}-ticket`}
          className="input"
          maxLength={200}
          value={ticket}
          onChange={(event) => setTicket(event.target.value)}
        />
      </div>
    </CommandDialog>
  )
}

const JSON_FIELDS: ReadonlySet<string> = new Set(['outputs', 'input_overrides', 'payload'])
const isJson = (field: Field | 'payload'): boolean => JSON_FIELDS.has(field)

const placeholders = (fields: readonly (Field | 'payload')[]): Record<string, unknown> =>
  Object.fromEntries(fields.flatMap((field) => (isJson(field) ? [] : [[field, '-']])))

/** The payload as far as it is typed, and what is still missing or wrong. */
function payloadOf(fields: readonly (Field | 'payload')[], values: Partial<Record<Field | 'payload', string>>) {
  const faults = new Map<Field | 'payload', string>()
  let payload: Record<string, unknown> = {}
  for (const field of fields) {
    const text = (values[field] ?? '').trim()
    if (!isJson(field)) {
      if (text === '') faults.set(field, t.intervene.needed)
      else payload[field] = text
      continue
    }
    try {
      const value: unknown = JSON.parse(text === '' ? '{}' : text)
      if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(t.intervene.an_object)
      if (field === 'payload') payload = value as Record<string, unknown>
      else payload[field] = value
    } catch (error) {
      faults.set(field, t.patch.editor.not_json((error as Error).message))
    }
  }
  return { payload, faults }
}
