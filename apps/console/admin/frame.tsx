import { useQuery } from '@tanstack/react-query'
import { Link, Navigate, Outlet, useLocation } from '@tanstack/react-router'
import { NotFound } from '../frame/lazy-page.tsx'
import { meQuery } from '../queries/me.ts'
import { Failure } from '../ui/failure.tsx'
import { Heading, Loading, Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { tAdmin } from '../words/admin.ts'
import { t } from '../words/index.ts'
import { ADMIN_PAGES } from './pages.ts'

/** The administration pages under one row of tabs. Pages that the person may not read are hidden. */
export const AdminFrame = () => {
  const me = useQuery(meQuery())
  const { pathname } = useLocation()
  if (me.isError && me.data === undefined)
    return (
      <Page>
        <Heading title={t.nav.admin}>{t.nav.admin}</Heading>
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
  const pages = ADMIN_PAGES.filter(({ reads }) => permissions.includes(reads))
  const [first] = pages
  if (pathname === '/admin' && first) return <Navigate {...first.link} replace />
  if (!pages.some(({ link }) => pathname.startsWith(link.to))) return <NotFound />
  return (
    <>
      <div className="mx-auto w-full max-w-page px-4 pt-4 sm:px-6">
        <Tabs label={tAdmin.tabs}>
          {pages.map(({ link, word }) => (
            <Link key={link.to} {...link} activeOptions={{ includeSearch: false }}>
              {word}
            </Link>
          ))}
        </Tabs>
      </div>
      <Outlet />
    </>
  )
}

type AdminPageProps = { title: string; actions?: React.ReactNode; children: React.ReactNode }

/** The head of an administration page: its name and its main actions. */
export const AdminPage = ({ title, actions, children }: AdminPageProps) => (
  <Page>
    <div className="flex flex-wrap items-center justify-between gap-3">
      <Heading title={title}>{title}</Heading>
      <div className="flex flex-wrap gap-2">{actions}</div>
    </div>
    {children}
  </Page>
)
