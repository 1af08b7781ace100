import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { PasskeyView } from '../../../shared/contracts/session/passkeys.ts'
import { Button } from '../../forms/button.tsx'
import { TextField } from '../../forms/field.tsx'
import { passkeysQuery } from '../../queries/me.ts'
import { makeKey } from '../../session/passkeys.ts'
import { currentUser } from '../../session/token.ts'
import { Page, PageHead } from '../../ui/page.tsx'
import { type Column, ListTable } from '../../ui/table.tsx'
import { TimeText } from '../../values/time.tsx'
import { tAccount } from '../../words/account.ts'
import { t } from '../../words/index.ts'
import { ProofFor, send, Told, useChanges } from '../changes.tsx'
import { TotpSection } from './totp.tsx'

const PATH = '/api/v1/users/me/passkeys'

const words = tAccount.passkeys

/** The person's passkeys: added through the browser's dialog, removed one by one. Both need a fresh sign-in. */
export const PasskeysPage = () => {
  const list = useQuery(passkeysQuery())
  const [name, setName] = useState('')
  const [missing, setMissing] = useState(false)
  const { busy, said, setSaid, act } = useChanges('passkeys')
  const rows = list.data?.items ?? []
  const change: typeof act = async (work, done) => {
    const ok = await act(work, done)
    if (ok) setName('')
    return ok
  }
  const add = async () => {
    const user = currentUser()
    const known = rows.map(({ credential_id }) => credential_id)
    const attestation = user && (await makeKey(user, known))
    return attestation ? send('POST', PATH, { name: name.trim(), attestation }) : words.cancelled
  }
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    setMissing(name.trim() === '')
    if (name.trim() !== '') void change(add, words.added)
  }
  const columns: Column<PasskeyView>[] = [
    { name: words.title, kind: 'lead', cell: (row) => row.name },
    { name: words.since, cell: ({ created_at }) => <TimeText at={created_at} /> },
    { name: words.last_used, cell: ({ last_used_at }) => (last_used_at ? <TimeText at={last_used_at} /> : '–') },
    {
      name: words.remove,
      cell: (row) => (
        <Button
          aria-disabled={busy}
          aria-label={words.remove_one(row.name)}
          onClick={() => void change(() => send('DELETE', `${PATH}/${row.id}`), words.removed)}
          word={words.remove}
        />
      ),
    },
  ]
  return (
    <Page>
      <PageHead title={t.nav.passkeys} note={words.note} />
      <Told said={said} />
      <ProofFor said={said} confirmed={() => setSaid(null)} />
      <ListTable list={list} empty={words.empty} caption={words.title} columns={columns} rows={rows} keyOf="id" />
      <form noValidate onSubmit={submit} className="flex max-w-96 flex-col gap-3">
        <TextField
          id="passkey-name"
          label={words.name}
          error={missing ? words.missing_name : null}
          maxLength={64}
          value={name}
          change={setName}
        />
        <Button type="submit" look="main" aria-disabled={busy} word={words.add} />
      </form>
      <TotpSection />
    </Page>
  )
}
