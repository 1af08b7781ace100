import type { Affected } from '../../shared/contracts/catalog/affected.ts'

const SHOWN = 5

/** The resources that depend on the targets of a plan, one line for each type and health. */
export const affectedLines = (affected: Affected | null): string[] => {
  if (!affected || affected.total === 0) return []
  const { total, at_least, unhealthy, groups } = affected
  const more = groups.length - SHOWN
  return [
    `Impact  ${at_least ? 'at least ' : ''}${total} affected if the targets fail: ${unhealthy} unhealthy, ${total - unhealthy} degraded`,
    ...groups.slice(0, SHOWN).map(({ type_key, health_status, count, nearest }) => {
      const names = nearest.map(({ resource_id }) => resource_id).join(', ')
      return `  ${String(count).padStart(6)}  ${type_key}   ${health_status}   ${names}${count > nearest.length ? ' …' : ''}`
    }),
    ...(more > 0 ? [`  … ${more} more groups: -o json shows all`] : []),
  ]
}
