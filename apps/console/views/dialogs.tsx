import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { SavedView, ViewList } from '../../shared/contracts/identity/views.ts'
import type { Command } from '../api/commands.ts'
import { CommandDialog } from '../command/dialog.tsx'
import { TextField } from '../forms/field.tsx'
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

type SaveProps = { list: ViewList; filters: Record<string, string>; views: readonly SavedView[]; close: () => void }

/** Saves the filters under a new name; under the name of an existing view of this list, replaces its filters. */
export const SaveDialog = ({ list, filters, views, close }: SaveProps) => {
  const [typed, setTyped] = useState('')
  const name = typed.trim()
  const known = views.find((view) => view.list === list && view.name.toLowerCase() === name.toLowerCase())
  return (
    <ViewDialog
      title={tViews.save_title}
      button={known ? tViews.replace : tViews.save}
      command={known ? on(known, 'PATCH', { filters }) : { path: PATH, body: { list, name, filters } }}
      blocked={name === ''}
      close={close}
    >
      <NameField value={typed} change={setTyped} {...(known && { note: tViews.replaces(known.name) })} />
    </ViewDialog>
  )
}

export const RenameDialog = ({ view, close }: { view: SavedView; close: () => void }) => {
  const [typed, setTyped] = useState(view.name)
  const name = typed.trim()
  return (
    <ViewDialog
      title={tViews.rename_one(view.name)}
      button={tViews.rename}
      command={on(view, 'PATCH', { name })}
      blocked={name === '' || name === view.name}
      close={close}
    >
      <NameField value={typed} change={setTyped} />
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
    <p>{tViews.deletes}</p>
  </ViewDialog>
)
