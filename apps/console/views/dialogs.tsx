import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { SavedView, ViewList } from '../../shared/contracts/identity/views.ts'
import type { Command } from '../api/commands.ts'
import { CommandDialog } from '../command/dialog.tsx'
import { TextField } from '../forms/field.tsx'
import { SelectField } from '../forms/select.tsx'
import { meQuery } from '../queries/me.ts'
import { useTyped } from '../session/typed.ts'
import { tViews } from '../words/views.ts'

const PATH = '/v1/users/me/views'
const LONGEST = 60
/** Refused if another tab has changed the view since it was read. */
const on = (
  { view_id, version }: SavedView,
  method: 'PATCH' | 'DELETE',
  body: Record<string, unknown> = {},
): Command => ({ method, path: `${PATH}/${view_id}`, body, version })

type Common = { title: string; button: string; command: Command; close: () => void }
const ViewDialog = (props: Common & { danger?: boolean; blocked?: boolean; children: React.ReactNode }) => {
  const client = useQueryClient()
  const refresh = () => void client.invalidateQueries({ queryKey: ['views'] })
  return <CommandDialog<never, unknown> {...props} preview={null} done={refresh} refused={refresh} />
}

type NameFieldProps = { value: string; change: (name: string) => void; note?: string }
const NameField = (props: NameFieldProps) => <TextField {...props} label={tViews.name} maxLength={LONGEST} />

type GroupFieldProps = { group: string | null; change: (group: string | null) => void }

/** Which of the person's groups sees the view; not asked of a person without groups. */
const GroupField = ({ group, change }: GroupFieldProps) => {
  const mine = useQuery(meQuery()).data?.groups ?? []
  // A group that the person has left is still the view's.
  const groups = [...new Set([...mine, ...(group === null ? [] : [group])])]
  return groups.length === 0 ? null : (
    <SelectField
      label={tViews.shared}
      choices={[['', tViews.alone], ...groups.map((key) => [key, key] as const)]}
      value={group ?? ''}
      change={(key) => change(key === '' ? null : key)}
    />
  )
}

type SaveProps = { list: ViewList; filters: Record<string, string>; views: readonly SavedView[]; close: () => void }

/** Saves the filters under a new name; under the name of an existing view of this list, replaces its filters. */
export const SaveDialog = ({ list, filters, views, close }: SaveProps) => {
  const [typed, setTyped] = useTyped(`view of ${list}`, '')
  const [chosen, choose] = useTyped<string | null | undefined>(`view of ${list} group`, undefined)
  const name = typed.trim()
  const known = views.find(
    (view) => view.owner === null && view.list === list && view.name.toLowerCase() === name.toLowerCase(),
  )
  const group = chosen === undefined ? (known?.group ?? null) : chosen
  return (
    <ViewDialog
      title={tViews.save_title}
      button={known ? tViews.replace : tViews.save}
      command={known ? on(known, 'PATCH', { filters, group }) : { path: PATH, body: { list, name, filters, group } }}
      blocked={name === ''}
      close={close}
    >
      <NameField value={typed} change={setTyped} {...(known && { note: tViews.replaces(known.name) })} />
      <GroupField group={group} change={choose} />
    </ViewDialog>
  )
}

/** Another name, or another group that sees it. */
export const ChangeDialog = ({ view, close }: { view: SavedView; close: () => void }) => {
  const [typed, setTyped] = useTyped(`view ${view.view_id}`, view.name)
  const [group, choose] = useTyped(`view ${view.view_id} group`, view.group)
  const name = typed.trim()
  return (
    <ViewDialog
      title={tViews.change_one(view.name)}
      button={tViews.change}
      command={on(view, 'PATCH', { name, group })}
      blocked={name === '' || (name === view.name && group === view.group)}
      close={close}
    >
      <NameField value={typed} change={setTyped} />
      <GroupField group={group} change={choose} />
    </ViewDialog>
  )
}

export const DeleteDialog = ({ view, close }: { view: SavedView; close: () => void }) => (
  <ViewDialog
    title={tViews.delete_one(view.name)}
    button={tViews.delete}
    danger
    command={on(view, 'DELETE')}
    close={close}
  >
    <p>{view.group === null ? tViews.deletes : tViews.deletes_shared(view.group)}</p>
  </ViewDialog>
)
