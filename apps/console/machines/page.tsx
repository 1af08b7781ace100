import { useInfiniteQuery } from '@tanstack/react-query'
import type { MachineRow } from '../api/types.ts'
import { ownMachinesQuery } from '../queries/me.ts'
import { rowsOf } from '../queries/pages.ts'
import { Card } from '../ui/card.tsx'
import { Page, PageHead } from '../ui/page.tsx'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { t } from '../words/index.ts'
import { Refusals } from './refusals.tsx'

const words = tAdmin.machine

/** The service accounts that the person answers for, to read. */
export const OwnMachinesPage = () => {
  const list = useInfiniteQuery(ownMachinesQuery())
  const machines = rowsOf(list)
  return (
    <Page>
      <PageHead title={t.nav.machines} note={words.own} />
      <Listing list={list} empty={machines.length === 0 ? words.own_none : undefined} cards>
        {machines.map((machine) => (
          <Card
            key={machine.id}
            title={machine.username}
            note={`${words.roles}: ${machine.roles.join(', ') || words.no_roles}`}
          >
            <DataTable caption={words.keys(machine.username)} columns={COLUMNS} rows={machine.credentials} keyOf="id" />
            <Refusals machine={machine} own />
          </Card>
        ))}
      </Listing>
    </Page>
  )
}

const COLUMNS: Column<MachineRow['credentials'][number]>[] = [
  { name: words.columns.name, kind: 'lead', cell: ({ name, kind }) => `${name} (${kind})` },
  { name: words.columns.permits, cell: ({ permissions }) => permissions.join(', ') },
  {
    name: words.columns.expires,
    cell: ({ revoked_at, expires_at }) => (revoked_at ? words.revoked : <TimeText at={expires_at} />),
  },
  {
    name: words.columns.used,
    cell: ({ last_used_at }) => (last_used_at ? <TimeText at={last_used_at} /> : tAdmin.never),
  },
]
