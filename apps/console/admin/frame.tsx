import { useQuery } from '@tanstack/react-query'
import { Link, linkOptions, Navigate, Outlet, useLocation } from '@tanstack/react-router'
import { NotFound } from '../frame/lazy-page.tsx'
import { meQuery } from '../queries/me.ts'
import { Failure } from '../ui/failure.tsx'
import { Heading, Loading, Page } from '../ui/page.tsx'
import { tAdmin } from '../words/admin.ts'

/** The pages, each with the permission that it reads with. */
const PAGES = [
  { link: linkOptions({ to: '/admin/users', search: { q: '' } }), word: tAdmin.user.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/groups' }), word: tAdmin.group.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/grants' }), word: tAdmin.grant.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/service-accounts' }), word: tAdmin.machine.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/changes' }), word: tAdmin.change.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/freezes' }), word: tAdmin.freeze.title, reads: 'operation:read' },
  { link: linkOptions({ to: '/admin/packs' }), word: tAdmin.pack.title, reads: 'operation:read' },
]

/** The pages of the administration under one row of tabs. Whoever may not read one meets no such page. */
export const AdminFrame = () => {
  const me = useQuery(meQuery())
  const { pathname } = useLocation()
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
  const { permissions } = me.data
  const pages = PAGES.filter(({ reads }) => permissions.includes(reads))
  const [first] = pages
  if (pathname === '/admin' && first) return <Navigate {...first.link} replace />
  if (!pages.some(({ link }) => pathname.startsWith(link.to))) return <NotFound />
  return (
    <>
      <div className="mx-auto w-full max-w-page px-4 pt-4 sm:px-6">
        <nav className="tabs" aria-label={tAdmin.tabs}>
          {pages.map(({ link, word }) => (
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
