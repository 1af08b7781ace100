import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Requirement } from '../../shared/contracts/catalog/capabilities.ts'
import type { ResourceType } from '../../shared/contracts/catalog/types.ts'
import type { Types } from '../packs/registry.ts'
import { fillIn, fillOne, type ProviderStatus, type Wanted } from '../rules/matching.ts'

type Declared = ResourceType['requires'][number] & { where?: Record<string, unknown>; amount?: unknown }
export const FIT: readonly ProviderStatus[] = ['available']
export const FIT_DEGRADED: readonly ProviderStatus[] = ['available', 'degraded']
/** What a resource requires, with the resource's values filled in. */
export const requirementsOf = (types: Types, row: ResourceRow): Requirement[] => {
  const type = types.version(row.type_id, row.type_version) ?? types.byId(row.type_id)
  return ((type?.requires ?? []) as Declared[]).map(({ where = {}, amount, ...rest }) => {
    const wanted = fillOne(amount ?? null, row)
    const { requirement_key, capability_key, version_range, min, scope } = rest
    const filled = { where: fillIn(where, row), amount: typeof wanted === 'number' ? wanted : null }
    return { requirement_key, capability_key, version_range, ...filled, min, scope }
  })
}

/** A requirement without an amount needs room for one claim. */
export const wishOf = (requirement: Requirement, statuses: readonly ProviderStatus[]): Wanted => ({
  ...requirement,
  amount: requirement.amount ?? 1,
  statuses,
})
