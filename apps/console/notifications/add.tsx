import { useState } from 'react'
import type { DestinationKind, DestinationView } from '../../shared/contracts/notifications/notifications.ts'
import { send } from '../account/changes.tsx'
import { Button } from '../forms/button.tsx'
import { TextField } from '../forms/field.tsx'
import { SelectField } from '../forms/select.tsx'
import { tAccount } from '../words/account.ts'
import { type PartProps, pathFor } from './notifications.api.ts'

const words = tAccount.notifications
/** A browser is not an address that a person types. */
const KINDS = (Object.keys(words.kinds) as DestinationKind[]).filter((kind) => kind !== 'push')

/** Takes the code that was mailed to a new address. */
export const CodeForm = ({ row, whose, act, busy }: PartProps & { row: DestinationView }) => {
  const [code, setCode] = useState('')
  const [wrong, setWrong] = useState(false)
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const valid = /^[0-9]{8}$/.test(code.trim())
    setWrong(!valid)
    if (valid)
      void act(
        () => send('POST', pathFor(whose, `destinations/${row.destination_id}/confirm`), { code: code.trim() }),
        words.confirmed,
      )
  }
  return (
    <form noValidate onSubmit={submit} className="flex max-w-96 flex-col gap-3">
      <TextField
        label={words.code(row.address)}
        error={wrong ? words.missing_code : null}
        inputMode="numeric"
        autoComplete="one-time-code"
        maxLength={8}
        value={code}
        change={setCode}
      />
      <Button type="submit" aria-disabled={busy} word={words.confirm} />
    </form>
  )
}

export const AddForm = ({ whose, act, busy }: PartProps) => {
  const [kind, setKind] = useState<DestinationKind>('email')
  const [address, setAddress] = useState('')
  const [missing, setMissing] = useState(false)
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    const given = address.trim()
    setMissing(given === '')
    if (given === '') return
    const body = { kind, name: words.kinds[kind], address: given }
    if (await act(() => send('POST', pathFor(whose, 'destinations'), body), words.added)) setAddress('')
  }
  return (
    <form noValidate onSubmit={(event) => void submit(event)} className="flex max-w-96 flex-col gap-3">
      <SelectField
        label={words.kind}
        choices={KINDS.map((one) => [one, words.kinds[one]] as const)}
        value={kind}
        change={(one) => setKind(one as DestinationKind)}
      />
      <TextField
        label={words.address}
        note={words.address_note}
        error={missing ? words.missing_address : null}
        maxLength={2000}
        value={address}
        change={setAddress}
      />
      <Button type="submit" look="main" aria-disabled={busy} word={words.add} />
    </form>
  )
}
