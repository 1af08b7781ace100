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
import type { Me } from '../api/types.ts'
import { t } from '../words/index.ts'

/** The permission needed to read each page, so that no link leads to a refusal. Phones show `further` under "More". */
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

/** Assumes the permissions that most people have until this person's are known. */
export const mayRead = (me: Me | undefined, permission: string): boolean =>
  me === undefined ? permission !== 'audit:read' && permission !== 'identity:read' : me.permissions.includes(permission)
