import { linkOptions } from '@tanstack/react-router'
import { tAdmin } from '../words/admin.ts'

/** The administration pages, each with the permission needed to read it. */
export const ADMIN_PAGES = [
  { link: linkOptions({ to: '/admin/users', search: { q: '' } }), word: tAdmin.user.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/groups' }), word: tAdmin.group.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/grants' }), word: tAdmin.grant.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/service-accounts' }), word: tAdmin.machine.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/providers' }), word: tAdmin.provider.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/changes' }), word: tAdmin.change.title, reads: 'identity:read' },
  { link: linkOptions({ to: '/admin/freezes' }), word: tAdmin.freeze.title, reads: 'operation:read' },
  { link: linkOptions({ to: '/admin/agents' }), word: tAdmin.agent.title, reads: 'operation:read' },
  { link: linkOptions({ to: '/admin/packs' }), word: tAdmin.pack.title, reads: 'operation:read' },
]
