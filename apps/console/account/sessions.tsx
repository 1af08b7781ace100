import { useQuery } from '@tanstack/react-query'
import type { SessionRow } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { sessionsQuery } from '../queries/me.ts'
import { Page, PageHead } from '../ui/page.tsx'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAccount } from '../words/account.ts'
import { ProofFor, send, Told, useChanges } from './changes.tsx'
import { deviceWords } from './device-words.ts'

const PATH = '/api/v1/sessions'

/** The active sessions, with this device marked; any other session can be signed out here. */
export const SessionsPage = () => {
  const list = useQuery(sessionsQuery())
  const { busy, said, setSaid, act } = useChanges('sessions')
  const rows = list.data?.items ?? []
  const columns: Column<SessionRow>[] = [
    { name: tAccount.sessions.device, kind: 'lead', cell: (row) => <Device row={row} /> },
    { name: tAccount.sessions.address, className: 'mono', cell: ({ ip_address }) => ip_address },
    { name: tAccount.sessions.last_used, cell: ({ last_used_at }) => <TimeText at={last_used_at} /> },
    { name: tAccount.sessions.since, cell: ({ created_at }) => <TimeText at={created_at} /> },
    {
      name: tAccount.sessions.end,
      cell: (row) =>
        row.current ? null : (
          <Button
            aria-disabled={busy}
            aria-label={tAccount.sessions.end_one(deviceOf(row))}
            onClick={() => void act(() => send('DELETE', `${PATH}/${row.id}`), tAccount.sessions.ended)}
            word={tAccount.sessions.end}
          />
        ),
    },
  ]
  return (
    <Page>
      <PageHead title={tAccount.sessions.title} note={tAccount.sessions.note} />
      <Told said={said} />
      <ProofFor said={said} confirmed={() => setSaid(null)} />
      <Listing list={list} empty={undefined}>
        <DataTable caption={tAccount.sessions.title} columns={columns} rows={rows} keyOf="id" />
      </Listing>
      {rows.length > 1 ? (
        <p>
          <Button
            aria-disabled={busy}
            onClick={() => void act(() => send('POST', `${PATH}/revoke-others`), tAccount.sessions.ended_others)}
            word={tAccount.sessions.end_others}
          />
        </p>
      ) : null}
    </Page>
  )
}

const deviceOf = ({ user_agent, metadata }: SessionRow): string => {
  const client = deviceWords(user_agent, tAccount.sessions.on) ?? tAccount.sessions.unknown
  return typeof metadata?.host === 'string' ? tAccount.sessions.on(client, metadata.host) : client
}

const Device = ({ row }: { row: SessionRow }) => (
  <span className="wrap-anywhere">
    <span title={row.user_agent ?? undefined}>{deviceOf(row)}</span>
    {row.current ? <strong className="ml-2 whitespace-nowrap">{tAccount.sessions.current}</strong> : null}
  </span>
)
