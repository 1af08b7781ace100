import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { FreezeItem } from '../../shared/contracts/operations/calendar.ts'
import { serverNow } from '../api/live.ts'
import { ActionButton, actionOf, mayPress, Reason } from '../command/allowed.tsx'
import { CommandDialog } from '../command/dialog.tsx'
import { Button } from '../forms/button.tsx'
import { HERE, timeOf } from '../kit/format.ts'
import { useRested } from '../kit/rested.ts'
import { meQuery } from '../queries/me.ts'
import { calendarQuery } from '../queries/overview.ts'
import { useTyped } from '../session/typed.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { type Chip, Conditions } from '../values/conditions.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { Fields, type FormField, initial, isComplete, scopeWords, type Typed, typedIn } from './fields.tsx'
import { AdminPage } from './frame.tsx'

const words = tAdmin.freeze

/** Freezes that have not ended: their reach, their times, and who may end them. */
export const FreezesPage = () => {
  const calendar = useQuery({ ...calendarQuery(), refetchInterval: 15_000 })
  const me = useQuery(meQuery()).data
  const [open, setOpen] = useState<'create' | FreezeItem>()
  const close = () => setOpen(undefined)
  const freezes = calendar.data?.freezes ?? []
  return (
    <AdminPage
      title={words.title}
      actions={
        me?.permissions.includes('operation:control') ? (
          <Button onClick={() => setOpen('create')} word={words.create} />
        ) : null
      }
    >
      <p className="max-w-text text-muted">{words.what}</p>
      <ListTable
        list={calendar}
        empty={words.empty}
        caption={words.title}
        columns={[...COLUMNS, { name: words.columns.end, cell: (freeze) => <End freeze={freeze} press={setOpen} /> }]}
        rows={freezes}
        keyOf="freeze_id"
      />
      {open === 'create' ? (
        <CreateDialog groups={me?.groups ?? []} close={close} />
      ) : open ? (
        <EndDialog freeze={open} close={close} />
      ) : null}
    </AdminPage>
  )
}

const COLUMNS: Column<FreezeItem>[] = [
  {
    name: words.columns.freeze,
    kind: 'lead',
    className: 'wrap-anywhere',
    cell: ({ title, freeze_id }) => (
      <>
        <bdi className="font-medium">{title}</bdi> <code className="text-muted">{freeze_id}</code>
      </>
    ),
  },
  { name: words.columns.status, cell: ({ in_force }) => (in_force ? words.in_force : words.planned) },
  { name: words.columns.from, className: 'whitespace-nowrap', cell: ({ from }) => <TimeText at={from} /> },
  { name: words.columns.to, className: 'whitespace-nowrap', cell: ({ to }) => <TimeText at={to} /> },
  {
    name: words.columns.covers,
    className: 'wrap-anywhere',
    cell: ({ applies, within }) => (
      <>
        <code>{applies}</code> {within && <span className="text-muted">{within.map(scopeWords).join('; ')}</span>}
      </>
    ),
  },
  { name: words.columns.approvers, cell: ({ approvers }) => approvers.join(', ') },
  { name: words.columns.by, cell: ({ put_by }) => put_by?.replace(/^user:/, '') ?? words.file },
]

/** The button for people who may end the freeze; for others the reason why not. */
const End = ({ freeze, press }: { freeze: FreezeItem; press: (freeze: FreezeItem) => void }) => {
  const action = actionOf(freeze, 'end')
  return mayPress(action) ? (
    <ActionButton action={action} press={() => press(freeze)}>
      <span aria-hidden="true">{words.end}</span>
      <span className="sr-only">{words.end_one(freeze.title)}</span>
    </ActionButton>
  ) : (
    <span className="text-muted">{action ? <Reason action={action} /> : null}</span>
  )
}

const EndDialog = ({ freeze, close }: { freeze: FreezeItem; close: () => void }) => {
  const { freeze_id, title, approvers, from, to } = freeze
  const client = useQueryClient()
  const when: FormField = { name: 'when', label: words.when, kind: 'select', choices: Object.entries(words.whens) }
  const [typed, setTyped] = useState(() => initial([when]))
  // A time that is still being typed must not mean now.
  const later = typedIn(typed, 'when') === 'later'
  const at = later ? timeOf(typedIn(typed, 'at')) : undefined
  const time = Date.parse(at ?? '')
  const outside = time >= Date.parse(to) || time <= Math.max(serverNow(), Date.parse(from))
  return (
    <CommandDialog<Record<string, never>, unknown>
      title={words.end_one(title)}
      button={later ? words.shorten : words.end}
      blocked={later && at === undefined}
      why={outside ? words.outside : undefined}
      danger
      command={{ path: `/v1/freezes/${encodeURIComponent(freeze_id)}/end`, body: at === undefined ? {} : { at } }}
      preview={null}
      done={() => void client.invalidateQueries({ queryKey: ['calendar'] })}
      close={close}
    >
      {later ? null : <p>{words.end_effect}</p>}
      {at === undefined ? null : (
        <p>
          {words.shorten_effect} <TimeText at={at} form="both" />
        </p>
      )}
      <Fields
        fields={later ? [when, { name: 'at', label: words.ends_at(HERE), kind: 'datetime-local' }] : [when]}
        typed={typed}
        change={setTyped}
      />
      <p>{words.end_instead(approvers)}</p>
    </CommandDialog>
  )
}

const FIELDS = (groups: readonly string[]): FormField[] => [
  { name: 'title', label: words.reason, kind: 'text' },
  { name: 'approvers', label: words.approvers, kind: 'text', value: groups.join(' ') },
  { name: 'from', label: words.begins(HERE), kind: 'datetime-local', optional: true },
  { name: 'to', label: words.ends(HERE), kind: 'datetime-local' },
]

/** Derives the id of a freeze from its title, with a unique ending. */
const idOf = (title: string, ending: string): string =>
  `f-${title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)}-${ending}`.replace(/-+/g, '-')

type Effect = { targets: number | null; operations: number | null; may_end: string[] | null }

const CreateDialog = ({ groups, close }: { groups: readonly string[]; close: () => void }) => {
  const client = useQueryClient()
  const fields = FIELDS(groups)
  const [typed, setTyped] = useTyped<Typed>('new freeze', () => initial(fields))
  const [where, setWhere] = useTyped<{ chips: Chip[]; when: string }>('new freeze where', { chips: [], when: '' })
  const [made] = useTyped<{ at: string; ending: string }>('new freeze made', () => ({
    ...{ at: new Date(serverNow()).toISOString(), ending: crypto.randomUUID().slice(0, 6) },
  }))
  const to = timeOf(typedIn(typed, 'to'))
  const title = typedIn(typed, 'title')
  const ready = isComplete(fields, typed) && where.when.trim() !== '' && to !== undefined
  const body = {
    ...{ freeze_id: idOf(title, made.ending), title, applies: where.when.trim() },
    ...{ from: timeOf(typedIn(typed, 'from')) ?? made.at, to },
    approvers: typedIn(typed, 'approvers')
      .split(/[\s,]+/)
      .filter(Boolean),
  }
  const text = JSON.stringify(ready ? body : null)
  // What is still being typed has no consequences yet.
  const preview = useRested(text) === text && ready ? body : null
  return (
    <CommandDialog<Effect, unknown>
      title={words.create}
      button={words.submit}
      danger
      command={{ path: '/v1/freezes', body }}
      preview={preview && { path: '/v1/freezes', body: preview }}
      consequences={({ targets, operations, may_end }) => (
        <>
          <p className="font-medium">{targets === null ? words.uncounted : words.covers(targets, operations ?? 0)}</p>
          {to && (
            <p>
              {words.columns.from} <TimeText at={body.from} form="full" />, {words.columns.to.toLowerCase()}{' '}
              <TimeText at={to} form="full" />
            </p>
          )}
          {may_end && <p>{words.may_end(may_end)}</p>}
        </>
      )}
      blocked={preview === null}
      done={() => void client.invalidateQueries({ queryKey: ['calendar'] })}
      close={close}
    >
      <p>{words.create_effect}</p>
      <Fields fields={fields} typed={typed} change={setTyped} />
      <Conditions {...where} note={words.conditions_note} change={setWhere} />
    </CommandDialog>
  )
}
