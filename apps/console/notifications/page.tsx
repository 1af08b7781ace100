import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type {
  DeliveryView,
  DestinationKind,
  DestinationView,
} from '../../shared/contracts/notifications/notifications.ts'
import { needsProof, send, Told, useChanges } from '../account/changes.tsx'
import { PasswordAgain } from '../command/fields.tsx'
import { TextField } from '../forms/field.tsx'
import { SelectField } from '../forms/select.tsx'
import { deliveriesQuery, destinationsQuery } from '../queries/me.ts'
import { Page, PageHead } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAccount } from '../words/account.ts'
import { ThisDevice } from './device.tsx'
import { Rules } from './rules.tsx'

const PATH = '/api/v1/notifications'
const DESTINATIONS = `${PATH}/destinations`
const words = tAccount.notifications
/** A browser is not an address that a person types. */
const KINDS = (Object.keys(words.kinds) as DestinationKind[]).filter((kind) => kind !== 'push')

type Act = ReturnType<typeof useChanges>['act']

/** Where the person is notified of decisions, and whether the messages arrived. */
export const NotificationsPage = () => {
  const list = useQuery(destinationsQuery())
  const { busy, said, setSaid, act } = useChanges('notifications')
  const rows = list.data?.items ?? []
  return (
    <Page>
      <PageHead title={words.title} note={words.note} />
      <Told said={said} />
      {needsProof(said) ? <PasswordAgain confirmed={() => setSaid(null)} /> : null}
      <ThisDevice />
      <ListTable
        list={list}
        empty={words.empty}
        caption={words.title}
        columns={columnsFor(act, busy)}
        rows={rows}
        keyOf="destination_id"
      />
      {rows
        .filter(({ status }) => status === 'unconfirmed')
        .map((row) => (
          <CodeForm key={row.destination_id} row={row} act={act} busy={busy} />
        ))}
      <AddForm act={act} busy={busy} />
      <Rules destinations={rows} />
      <Log act={act} busy={busy} />
    </Page>
  )
}

/** All browsers of one vendor share an origin, so a name distinguishes them. */
const labelOf = ({ kind, name, address }: DestinationView) => (kind === 'push' ? name : address)

const columnsFor = (act: Act, busy: boolean): Column<DestinationView>[] => [
  { name: words.to, kind: 'lead', cell: labelOf },
  { name: words.kind, cell: ({ kind }) => words.kinds[kind] },
  { name: words.status, cell: ({ status, status_reason }) => status_reason ?? words.statuses[status] },
  {
    name: words.test,
    cell: (row) =>
      row.status === 'active' ? (
        <RowButton
          name={words.test}
          label={words.test_one(labelOf(row))}
          busy={busy}
          act={() => act(() => send('POST', `${DESTINATIONS}/${row.destination_id}/test`, {}), words.tested)}
        />
      ) : (
        '–'
      ),
  },
  {
    name: words.remove,
    cell: (row) => (
      <RowButton
        name={words.remove}
        label={words.remove_one(labelOf(row))}
        busy={busy}
        act={() => act(() => send('DELETE', `${DESTINATIONS}/${row.destination_id}`), words.removed)}
      />
    ),
  },
]

type RowButtonProps = { name: string; label: string; busy: boolean; act: () => Promise<boolean> }
const RowButton = ({ name, label, busy, act }: RowButtonProps) => (
  <button type="button" className="button" aria-disabled={busy} aria-label={label} onClick={() => void act()}>
    {name}
  </button>
)

const CodeForm = ({ row, act, busy }: { row: DestinationView; act: Act; busy: boolean }) => {
  const [code, setCode] = useState('')
  const [wrong, setWrong] = useState(false)
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const valid = /^[0-9]{8}$/.test(code.trim())
    setWrong(!valid)
    if (valid)
      void act(
        () => send('POST', `${DESTINATIONS}/${row.destination_id}/confirm`, { code: code.trim() }),
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
      <button type="submit" className="button" aria-disabled={busy}>
        {words.confirm}
      </button>
    </form>
  )
}

const AddForm = ({ act, busy }: { act: Act; busy: boolean }) => {
  const [kind, setKind] = useState<DestinationKind>('email')
  const [address, setAddress] = useState('')
  const [missing, setMissing] = useState(false)
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    const given = address.trim()
    setMissing(given === '')
    if (given === '') return
    const body = { kind, name: words.kinds[kind], address: given }
    if (await act(() => send('POST', DESTINATIONS, body), words.added)) setAddress('')
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
      <button type="submit" className="button main" aria-disabled={busy}>
        {words.add}
      </button>
    </form>
  )
}

const logColumns = (act: Act, busy: boolean): Column<DeliveryView>[] => [
  { name: words.about, kind: 'lead', cell: ({ purpose }) => words.purposes[purpose] },
  { name: words.state, cell: ({ state }) => words.states[state] },
  { name: words.at, cell: ({ created_at }) => <TimeText at={created_at} /> },
  { name: words.error, cell: ({ last_error }) => last_error ?? '–' },
  {
    name: words.again,
    cell: ({ delivery_id, purpose, state }) =>
      state === 'dead' ? (
        <RowButton
          name={words.again}
          label={words.again_one(words.purposes[purpose])}
          busy={busy}
          act={() => act(() => send('POST', `${PATH}/deliveries/${delivery_id}/redeliver`, {}), words.queued)}
        />
      ) : (
        '–'
      ),
  },
]

const Log = ({ act, busy }: { act: Act; busy: boolean }) => {
  const list = useQuery(deliveriesQuery())
  const rows = list.data?.items ?? []
  return (
    <section aria-labelledby="notify-log" className="flex flex-col gap-3">
      <h2 id="notify-log" className="card-title">
        {words.log}
      </h2>
      <ListTable
        list={list}
        empty={words.no_log}
        caption={words.log}
        columns={logColumns(act, busy)}
        rows={rows}
        keyOf="delivery_id"
      />
    </section>
  )
}
