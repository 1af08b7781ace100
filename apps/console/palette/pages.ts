import { linkOptions, useLocation, useParams } from '@tanstack/react-router'
import { ADMIN_PAGES } from '../admin/pages.ts'
import type { Me } from '../api/types.ts'
import { mayRead, PLACES } from '../frame/places.ts'
import { recentlyOpened } from '../kit/recent.ts'
import { palette } from '../words/frame/palette.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import type { Item } from './items.ts'

/** Pages of the person's account. */
const OWN = [
  { link: linkOptions({ to: '/settings/display' }), word: t.nav.display },
  { link: linkOptions({ to: '/settings/sessions' }), word: t.nav.sessions },
  { link: linkOptions({ to: '/settings/passkeys' }), word: t.nav.passkeys },
  { link: linkOptions({ to: '/settings/notifications' }), word: t.nav.notifications },
  { link: linkOptions({ to: '/settings/service-accounts' }), word: t.nav.machines },
  { link: linkOptions({ to: '/settings/password' }), word: t.nav.password },
]
const VIEWS = ['graph', 'nodes', 'timeline', 'patches', 'artifacts', 'evidence', 'activity'] as const

const RECENT = 5

const pageOf = ({ link, word }: { link: { to: string }; word: string }): Item => ({
  ...{ key: `page ${link.to}`, text: word, aside: palette.page, link: link as Item['link'] },
})

/** Every page that this person may open, and the views of the open operation. */
export const usePages = (me: Me | undefined): Item[] => {
  const { operation_id = '' } = useParams({ strict: false })
  const views = operation_id === '' ? [] : VIEWS
  return [
    ...views.map((view) => {
      const link: Item['link'] = { to: `/operations/$operation_id/${view}`, params: { operation_id } }
      return { ...pageOf({ link: { to: view }, word: tOperation.operation.tabs[view] }), link }
    }),
    ...[...PLACES, ...ADMIN_PAGES].filter(({ reads }) => mayRead(me, reads)).map(pageOf),
    ...OWN.map(pageOf),
  ]
}

/** The pages that this tab opened most recently. */
export const useRecent = (): Item[] => {
  const { pathname } = useLocation()
  return recentlyOpened(pathname)
    .slice(0, RECENT)
    .map(({ title, href }) => ({ key: `recent ${href}`, text: title, aside: palette.recent, href }))
}
