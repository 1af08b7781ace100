import { linkOptions } from '@tanstack/react-router'
import {
  Boxes,
  CalendarClock,
  ChartColumn,
  Goal,
  HeartPulse,
  Inbox,
  Network,
  Plug,
  ScrollText,
  Users,
  Workflow,
} from 'lucide-react'
import type { SavedView } from '../../shared/contracts/identity/views.ts'
import type { FoundResource, InboxRow, Me, OperationRow } from '../api/types.ts'
import { t } from '../words/index.ts'

/** The permission that each page reads with, so that no link leads to a refusal. `further` is under "More" on a phone. */
export const PLACES = [
  {
    link: linkOptions({ to: '/inbox', search: { for: 'me' } }),
    word: t.nav.inbox,
    Icon: Inbox,
    reads: 'operation:read',
  },
  {
    link: linkOptions({ to: '/overview', search: { days: 14 } }),
    word: t.nav.overview,
    Icon: ChartColumn,
    reads: 'operation:read',
    further: true,
  },
  {
    link: linkOptions({ to: '/operations', search: { tab: 'running', q: '' } }),
    word: t.nav.operations,
    Icon: Workflow,
    reads: 'operation:read',
  },
  {
    link: linkOptions({ to: '/intents', search: { whose: 'mine' } }),
    word: t.nav.intents,
    Icon: Goal,
    reads: 'operation:read',
    further: true,
  },
  {
    link: linkOptions({ to: '/schedules' }),
    word: t.nav.schedules,
    Icon: CalendarClock,
    reads: 'operation:read',
    further: true,
  },
  {
    link: linkOptions({ to: '/resources', search: { type: '', region: '', health: '', q: '' } }),
    word: t.nav.resources,
    Icon: Boxes,
    reads: 'catalog:read',
  },
  { link: linkOptions({ to: '/topology' }), word: t.nav.topology, Icon: Network, reads: 'catalog:read', further: true },
  {
    link: linkOptions({ to: '/capabilities' }),
    word: t.nav.capabilities,
    Icon: Plug,
    reads: 'catalog:read',
    further: true,
  },
  { link: linkOptions({ to: '/health' }), word: t.nav.health, Icon: HeartPulse, reads: 'catalog:read', further: true },
  {
    link: linkOptions({
      to: '/audit',
      search: { source: 'operations', actor: '', action: '', object: '', from: '', to: '' },
    }),
    word: t.nav.audit,
    Icon: ScrollText,
    reads: 'audit:read',
    further: true,
  },
  { link: linkOptions({ to: '/admin' }), word: t.nav.admin, Icon: Users, reads: 'operation:read', further: true },
]

/** Pages of the administration that the palette offers too. */
const ADMINISTRATION = [
  { link: linkOptions({ to: '/admin/users', search: { q: '' } }), word: t.nav.users, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/freezes' }), word: t.nav.freezes, reads: 'operation:read' },
  { link: linkOptions({ to: '/admin/packs' }), word: t.nav.packs, reads: 'operation:read' },
]

/** The pages that this person may open whose name has a word that begins so. */
export const placesNamed = (me: Me | undefined, typed: string) =>
  [...PLACES, ...ADMINISTRATION].filter(
    ({ word, reads }) =>
      mayRead(me, reads) &&
      word
        .toLowerCase()
        .split(' ')
        .some((part) => part.startsWith(typed.toLowerCase())),
  )

/** One line of the list below the go-to field. */
export type Item = { key: string } & (
  | { place: ReturnType<typeof placesNamed>[number] }
  | { row: OperationRow }
  | { resource: FoundResource }
  | { view: SavedView }
  | { gate: InboxRow }
)

/** The permissions that most people have, until those of this person are known. */
export const mayRead = (me: Me | undefined, permission: string): boolean =>
  me === undefined ? permission !== 'audit:read' && permission !== 'identity:read' : me.permissions.includes(permission)
