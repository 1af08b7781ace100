import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import type { ProviderView } from '../../shared/contracts/identity/providers.ts'
import { AdminPage } from '../admin/frame.tsx'
import { coarse } from '../kit/format.ts'
import { providersQuery } from '../queries/admin.ts'
import { meQuery } from '../queries/me.ts'
import { trialAddress } from '../session/providers.ts'
import { Card } from '../ui/card.tsx'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { Facts } from '../values/facts.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { Trial } from './trial.tsx'
import { Unlinked } from './unlinked.tsx'

const words = tAdmin.provider

/** The identity providers: whom they let in, what their groups grant here, and how many people use them. */
export const ProvidersPage = () => {
  const list = useQuery(providersQuery())
  const { items = [], fault = null } = list.data ?? {}
  const { trial } = useSearch({ from: '/shell/admin/providers' })
  const mayTry = useQuery(meQuery()).data?.permissions.includes('identity:admin') ?? false
  return (
    <AdminPage title={words.title}>
      <p className="max-w-text text-muted">{words.about}</p>
      {fault === null ? null : (
        <p role="alert" className="card p-4">
          {words.fault} <code lang="en">{fault}</code>
        </p>
      )}
      {trial === undefined ? null : <Trial trial={trial} />}
      <Listing list={list} empty={items.length === 0 ? words.empty : undefined} cards>
        {items.map((provider) => (
          <Provider key={provider.id} provider={provider} mayTry={mayTry} />
        ))}
      </Listing>
      {items.some(({ enabled }) => enabled) ? <Unlinked /> : null}
    </AdminPage>
  )
}

const Provider = ({ provider, mayTry }: { provider: ProviderView; mayTry: boolean }) => (
  <Card
    title={provider.title}
    note={provider.enabled ? provider.id : words.off}
    aside={
      mayTry && provider.enabled ? (
        <a className="button" href={trialAddress(provider.id)}>
          {words.trial.start}
        </a>
      ) : null
    }
  >
    <Facts className="p-4" facts={factsOf(provider)} />
    {provider.groups_claim === null ? null : (
      <DataTable caption={words.map_of(provider.title)} columns={MAP} rows={provider.map} keyOf="name" />
    )}
  </Card>
)

const factsOf = ({ issuer, people, creates_accounts, requires, max_role, session_max_s, scim }: ProviderView) =>
  [
    [words.issuer, <code key="issuer">{issuer}</code>],
    [words.people, people],
    [words.accounts, creates_accounts ? words.created : words.invited],
    [words.requires, requires.map(({ kind, value }) => words.required[kind](value)).join('; ') || words.anyone],
    [words.max_role, max_role],
    [words.session, coarse(session_max_s * 1000)],
    [words.directory, scim ? <Directory key="directory" scim={scim} /> : words.no_directory],
  ] as const

const Directory = ({ scim }: { scim: NonNullable<ProviderView['scim']> }) => (
  <>
    {words.maintains(scim.people, scim.groups)} <code>{scim.machine}</code>
    {scim.changed_at === null ? null : (
      <>
        {' · '}
        {words.changed} <TimeText at={scim.changed_at} />
      </>
    )}
  </>
)

const MAP: Column<ProviderView['map'][number]>[] = [
  { name: words.columns.name, kind: 'lead', className: 'wrap-anywhere', cell: ({ name }) => name },
  { name: words.columns.groups, cell: ({ groups }) => groups.join(', ') || null },
  { name: words.columns.roles, cell: ({ roles }) => roles.join(', ') || null },
]
