import { useQuery } from '@tanstack/react-query'
import { Link, linkOptions, Outlet } from '@tanstack/react-router'
import { NotFound } from '../frame/not-found.tsx'
import { meQuery } from '../queries/me.ts'
import { Failure } from '../ui/failure.tsx'
import { Heading, Loading, Page } from '../ui/page.tsx'
import { tAdmin } from '../words/admin.ts'

const PAGES = [
  { link: linkOptions({ to: '/admin/users', search: { q: '' } }), word: tAdmin.user.title },
  { link: linkOptions({ to: '/admin/groups' }), word: tAdmin.group.title },
  { link: linkOptions({ to: '/admin/grants' }), word: tAdmin.grant.title },
  { link: linkOptions({ to: '/admin/service-accounts' }), word: tAdmin.machine.title },
  { link: linkOptions({ to: '/admin/changes' }), word: tAdmin.change.title },
]

/** The pages of the administration under one row of tabs. Whoever may not read them meets no such page. */
export const AdminFrame = () => {
  const me = useQuery(meQuery())
  if (me.isError && me.data === undefined)
    return (
      <Page>
        <Failure error={me.error} retry={() => void me.refetch()} />
      </Page>
    )
  if (me.data === undefined)
    return (
      <Page>
        <Loading />
      </Page>
    )
  if (!me.data.permissions.includes('identity:read')) return <NotFound />
  return (
    <>
      <div className="mx-auto w-full max-w-page px-4 pt-4 sm:px-6">
        <nav className="tabs" aria-label={tAdmin.tabs}>
          {PAGES.map(({ link, word }) => (
            <Link key={link.to} {...link} activeOptions={{ includeSearch: false }}>
              {word}
            </Link>
          ))}
        </nav>
      </div>
      <Outlet />
    </>
  )
}

type AdminPageProps = { title: string; actions?: React.ReactNode; children: React.ReactNode }

/** The head of an administration page: its name and the actions that begin something. */
export const AdminPage = ({ title, actions, children }: AdminPageProps) => (
  <Page>
    <div className="flex flex-wrap items-center justify-between gap-3">
      <Heading title={title}>{title}</Heading>
      <div className="flex flex-wrap gap-2">{actions}</div>
    </div>
    {children}
  </Page>
)
