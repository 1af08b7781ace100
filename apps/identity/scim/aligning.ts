import { countStranded, dropUnaligned, listUnaligned, queueLacking, scimGroupNames } from '../../../db/identity/scim.ts'
import { lockControl } from '../control/dual.ts'
import type { Uses } from '../deps.ts'
import { alignIn, MOST_AT_ONCE } from '../federation/rights.ts'

const directoriesOf = ({ providers }: Uses<'providers'>) => providers.list().filter(({ scim }) => scim)

/** Lets the rights of people in large groups follow what their directory last stated. Returns true if more may wait. */
export const alignNext = async (deps: Uses<'db' | 'keys' | 'providers'>): Promise<boolean> => {
  const providers = directoriesOf(deps)
  const names = providers.map(({ id }) => id)
  if ((await listUnaligned(deps.db, names, 1)).length === 0) return false
  return deps.db.transaction(async (tx) => {
    await lockControl(deps, tx)
    const some = await listUnaligned(tx, names, MOST_AT_ONCE)
    for (const provider of providers) {
      const ids = some.flatMap((one) => (one.provider === provider.id ? [one.user_id] : []))
      await alignIn(deps, tx, provider, await scimGroupNames(tx, provider, ids), null)
      await dropUnaligned(tx, ids)
    }
    return some.length === MOST_AT_ONCE
  })
}

/** Queues people of directories who lack rights that the file gives, whenever it may have changed. */
export const queueReturned = (deps: Uses<'db' | 'providers'>): Promise<void> =>
  queueLacking(deps.db, directoriesOf(deps))

/** Reports people whose rights follow no directory: without its entry in the file, their groups give no rights. */
export const reportStranded = async (deps: Uses<'db' | 'providers' | 'telemetry'>): Promise<void> => {
  const names = directoriesOf(deps).map(({ id }) => id)
  for (const stranded of await countStranded(deps.db, names))
    deps.telemetry.log.error(stranded, 'rights cannot follow a directory that the file of providers does not enable')
}
