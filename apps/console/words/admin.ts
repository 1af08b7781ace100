import { common } from './admin/common.ts'
import { grant, group, identity, session, unlinked, user } from './admin/people.ts'
import { change, machine, provider } from './admin/trust.ts'
import { agent, freeze, pack } from './admin/work.ts'

/** Texts for the administration: people, their rights, changes that need two administrators, freezes and packs. */
export const tAdmin = {
  ...common,
  user,
  session,
  identity,
  unlinked,
  group,
  grant,
  machine,
  change,
  provider,
  freeze,
  agent,
  pack,
}
