import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { SessionRow } from '../api/types.ts'
import { sessionsQuery } from '../queries/me.ts'
import { ProblemText } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAccount } from '../words/account.ts'
import { deviceWords } from './device-words.ts'
import { endOtherSessions, endSession } from './sessions.api.ts'

/** The active sessions, this device marked; any other may be signed out from here. */
export const SessionsPage = () => {
  const list = useQuery(sessionsQuery())
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState<string | Problem | null>(null)
  const rows = list.data?.items ?? []
  const act = async (work: () => Promise<Problem | null>, done: string) => {
    if (busy) return
    setBusy(true)
    const problem = await work()
    setSaid(problem ?? done)
    await client.invalidateQueries({ queryKey: ['sessions'] })
    setBusy(false)
  }
  const columns: Column<SessionRow>[] = [
    { name: tAccount.sessions.device, kind: 'lead', cell: (row) => <Device row={row} /> },
    { name: tAccount.sessions.address, className: 'mono', cell: ({ ip_address }) => ip_address },
    { name: tAccount.sessions.last_used, cell: ({ last_used_at }) => <TimeText at={last_used_at} /> },
    { name: tAccount.sessions.since, cell: ({ created_at }) => <TimeText at={created_at} /> },
    {
      name: tAccount.sessions.end,
      cell: (row) =>
        row.current ? null : (
          <button
            type="button"
            className="button"
            aria-disabled={busy}
            aria-label={tAccount.sessions.end_one(deviceOf(row))}
            onClick={() => void act(() => endSession(row.id), tAccount.sessions.ended)}
          >
            {tAccount.sessions.end}
          </button>
        ),
    },
  ]
  return (
    <Page>
      <div>
        <Heading title={tAccount.sessions.title}>{tAccount.sessions.title}</Heading>
        <p className="text-muted">{tAccount.sessions.note}</p>
      </div>
      <div role="status">{typeof said === 'string' ? <p>{said}</p> : said ? <ProblemText problem={said} /> : null}</div>
      <Listing list={list} empty={undefined}>
        <DataTable caption={tAccount.sessions.title} columns={columns} rows={rows} keyOf={({ id }) => id} />
      </Listing>
      {rows.length > 1 ? (
        <p>
          <button
            type="button"
            className="button"
            aria-disabled={busy}
            onClick={() => void act(endOtherSessions, tAccount.sessions.ended_others)}
          >
            {tAccount.sessions.end_others}
          </button>
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
