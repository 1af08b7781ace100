import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { DeliveryView, DestinationView } from '../../shared/contracts/notifications/notifications.ts'
import { ProofFor, send, Told, useChanges } from '../account/changes.tsx'
import { Button } from '../forms/button.tsx'
import { Filter } from '../forms/select.tsx'
import { groupsQuery } from '../queries/admin.ts'
import { meQuery } from '../queries/me.ts'
import { rowsOf } from '../queries/pages.ts'
import { Page, PageHead } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAccount } from '../words/account.ts'
import { AddForm, CodeForm } from './add.tsx'
import { ThisDevice } from './device.tsx'
import { deliveriesQuery, destinationsQuery, type PartProps, pathFor, type Whose } from './notifications.api.ts'
import { Rules } from './rules.tsx'
import { WebhookSecret } from './secret.tsx'

const words = tAccount.notifications

/** Where, when and about which decisions the person, or a group, is notified, and whether the messages arrived. */
export const NotificationsPage = () => {
  const whose = useSearch({ from: '/shell/settings/notifications' })
  const list = useQuery(destinationsQuery(whose))
  const { busy, said, setSaid, act } = useChanges('notifications')
  const part = { whose, busy, act }
  const rows = list.data?.items ?? []
  return (
    <Page>
      <PageHead title={words.title} note={whose.group === undefined ? words.note : words.group_note(whose.group)} />
      <OfWhom whose={whose} />
      <Told said={said} />
      <ProofFor said={said} confirmed={() => setSaid(null)} />
      {whose.group === undefined ? <ThisDevice /> : null}
      <ListTable
        list={list}
        empty={whose.group === undefined ? words.empty : words.group_empty}
        caption={words.title}
        columns={columnsFor(part)}
        rows={rows}
        keyOf="destination_id"
      />
      {rows
        .filter(({ status }) => status === 'unconfirmed')
        .map((row) => (
          <CodeForm key={row.destination_id} row={row} {...part} />
        ))}
      <AddForm {...part} />
      {list.data ? <Rules whose={whose} destinations={rows} labelOf={labelOf} /> : null}
      <Log {...part} />
    </Page>
  )
}

/** Administrators also set the notifications of groups. */
const OfWhom = ({ whose }: { whose: Whose }) => {
  const may = useQuery(meQuery()).data?.permissions.includes('identity:admin') ?? false
  const groups = rowsOf(useInfiniteQuery({ ...groupsQuery(), enabled: may }))
  const navigate = useNavigate({ from: '/settings/notifications' })
  if (!may) return null
  return (
    <Filter
      label={words.whose}
      choices={[['', words.own], ...groups.map(({ group_key, name }) => [group_key, name] as const)]}
      value={whose.group ?? ''}
      change={(group) => void navigate({ search: group === '' ? {} : { group } })}
    />
  )
}

/** All browsers of one vendor share an origin, so a name distinguishes them. */
const labelOf = ({ kind, name, address }: DestinationView) => (kind === 'push' ? name : address)

const columnsFor = ({ whose, act, busy }: PartProps): Column<DestinationView>[] => [
  { name: words.to, kind: 'lead', cell: labelOf },
  {
    name: words.kind,
    cell: (row) => (
      <>
        {words.kinds[row.kind]}
        {row.kind === 'webhook' ? (
          <WebhookSecret
            whose={whose}
            id={row.destination_id}
            label={labelOf(row)}
            renew={() =>
              void act(
                () => send('POST', pathFor(whose, `destinations/${row.destination_id}/secret`), {}),
                words.secret_renewed,
              )
            }
          />
        ) : null}
      </>
    ),
  },
  { name: words.status, cell: ({ status, status_reason }) => inEnglish(status_reason) ?? words.statuses[status] },
  {
    name: words.test,
    cell: (row) =>
      row.status === 'active' ? (
        <RowButton
          name={words.test}
          label={words.test_one(labelOf(row))}
          busy={busy}
          act={() =>
            act(() => send('POST', pathFor(whose, `destinations/${row.destination_id}/test`), {}), words.tested)
          }
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
        act={() => act(() => send('DELETE', pathFor(whose, `destinations/${row.destination_id}`)), words.removed)}
      />
    ),
  },
]

/** The server's own words are English. */
const inEnglish = (text: string | null) => (text === null ? null : <span lang="en">{text}</span>)

type RowButtonProps = { name: string; label: string; busy: boolean; act: () => Promise<boolean> }
const RowButton = ({ name, label, busy, act }: RowButtonProps) => (
  <Button aria-disabled={busy} aria-label={label} onClick={() => void act()} word={name} />
)

const logColumns = ({ whose, act, busy }: PartProps): Column<DeliveryView>[] => [
  { name: words.about, kind: 'lead', cell: ({ purpose }) => words.purposes[purpose] },
  { name: words.state, cell: ({ state }) => words.states[state] },
  { name: words.at, cell: ({ created_at }) => <TimeText at={created_at} /> },
  { name: words.error, cell: ({ last_error }) => inEnglish(last_error) ?? '–' },
  {
    name: words.again,
    cell: ({ delivery_id, purpose, state }) =>
      state === 'dead' ? (
        <RowButton
          name={words.again}
          label={words.again_one(words.purposes[purpose])}
          busy={busy}
          act={() => act(() => send('POST', pathFor(whose, `deliveries/${delivery_id}/redeliver`), {}), words.queued)}
        />
      ) : (
        '–'
      ),
  },
]

const Log = (part: PartProps) => {
  const list = useQuery(deliveriesQuery(part.whose))
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
        columns={logColumns(part)}
        rows={rows}
        keyOf="delivery_id"
      />
    </section>
  )
}
