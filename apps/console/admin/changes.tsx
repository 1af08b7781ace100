import { useInfiniteQuery } from '@tanstack/react-query'
import { Fragment } from 'react'
import { factsOf } from '../../shared/contracts/identity/change-facts.ts'
import type { ChangeRow } from '../api/types.ts'
import { changesQuery } from '../queries/admin.ts'
import { currentUser } from '../session/token.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { Facts } from '../values/facts.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { type Act, useActs } from './acts.tsx'
import { AdminPage } from './frame.tsx'
import { UserName } from './grants.tsx'

const words = tAdmin.change

/** Changes that need a second administrator, newest first. */
export const ChangesPage = () => {
  const list = useInfiniteQuery(changesQuery())
  const { button, dialog } = useActs()
  const notice = list.data?.pages[0]?.control.notice
  const columns: Column<ChangeRow>[] = [
    { name: words.columns.kind, kind: 'lead', cell: ({ kind }) => words.kind[kind] ?? kind },
    { name: words.columns.for, cell: For },
    { name: words.columns.by, cell: ({ requested_by }) => <UserName user_id={requested_by} /> },
    { name: words.columns.status, cell: ({ status }) => <Status state={status === 'pending' ? 'waiting' : status} /> },
    { name: words.columns.until, cell: ({ expires_at }) => <TimeText at={expires_at} /> },
    {
      name: words.confirm,
      cell: (change) => (
        <span className="flex flex-wrap gap-2">{verbsOf(change).map((verb) => button(decision(change, verb)))}</span>
      ),
    },
  ]
  return (
    <AdminPage title={words.title}>
      {notice ? (
        <p lang="en" className="text-muted">
          {notice}
        </p>
      ) : null}
      <ListTable list={list} empty={words.empty} caption={words.title} columns={columns} keyOf="id" />
      {dialog}
    </AdminPage>
  )
}

const For = ({ subject: { name, gives } }: ChangeRow) => (
  <>
    <bdi>{name}</bdi>
    {gives.length > 0 ? ` · ${words.gives(gives.join(', '))}` : null}
  </>
)

const labels: Record<string, string> = { ...words.fact, ...tAdmin.scope }

/** What the change would do: whoever decides must see all of it. */
const ChangeFacts = (change: ChangeRow) => (
  <Facts
    facts={factsOf(change).map(({ name, part = '', value }) => [
      <Fragment key={name}>
        {labels[name] ?? name} <bdi>{part}</bdi>
      </Fragment>,
      inWords(name, value),
      'break-all',
    ])}
  />
)

const inWords = (name: string, value: string) =>
  value === '' ? words.no_limit : name === 'expires_at' ? <TimeText at={value} /> : <bdi>{value}</bdi>

type Verb = keyof typeof words.effect
/** The person who requested a change can withdraw it; others can confirm or reject it. */
const verbsOf = ({ status, requested_by }: ChangeRow): Verb[] =>
  status !== 'pending' ? [] : requested_by === currentUser()?.user_id ? ['withdraw'] : ['confirm', 'reject']

/** The confirmation sends the digest that was shown; a change that has moved since is refused. */
const decision = (change: ChangeRow, verb: Verb): Act => ({
  title: `${words[verb]}: ${words.kind[change.kind] ?? change.kind}, ${change.subject.name}`,
  button: words[verb],
  effect: words.effect[verb],
  about: <ChangeFacts {...change} />,
  danger: verb === 'reject',
  path: `/v1/admin/changes/${change.id}/${verb}`,
  body: () => (verb === 'confirm' ? { digest: change.digest } : {}),
})
