import type { ImportItem } from '../../shared/contracts/imports/imports.ts'
import type { Found } from './items.ts'
import { createLedger } from './loss.ts'
import { SourceError } from './source.ts'

/** Names of types or of the source's kinds: the only ones to take, if given, and those to leave out. */
export type Choice = { only: readonly string[]; leave_out: readonly string[] }

/** The requested part of a file with its containers, without edges to the rest. An unknown name is a mistake. */
export const choose = (found: Found, { only, leave_out }: Choice): Found => {
  const { items, origins } = found
  const ledger = createLedger({ fields: found.ledger.fields(), left_out: found.ledger.leftOut() })
  const byId = new Map(items.map((item) => [item.external_id, item]))
  const has = (item: ImportItem, names: readonly string[]) =>
    names.includes(item.type_key) || names.includes(origins.get(item.external_id)?.kind ?? '')
  for (const name of [...only, ...leave_out])
    if (!items.some((item) => has(item, [name]))) throw new SourceError(`it has no item of the type or kind ${name}`)

  const kept = new Set<string>()
  for (const item of items) {
    if ((only.length > 0 && !has(item, only)) || has(item, leave_out)) continue
    for (
      let at: ImportItem | undefined = item;
      at && !kept.has(at.external_id);
      at = byId.get(at.parent_external_id ?? '')
    )
      kept.add(at.external_id)
  }
  if (kept.size === 0) throw new SourceError('no items match the options')

  const generic = new Map(found.generic)
  for (const { external_id, type_key, desired_state } of items) {
    if (kept.has(external_id)) continue
    ledger.leaveOut(type_key, 'the options leave it out')
    if (type_key !== 'infra.generic') continue
    const kind = String(desired_state?.kind)
    const left = (generic.get(kind) ?? 0) - 1
    if (left > 0) generic.set(kind, left)
    else generic.delete(kind)
  }
  const goes = (external_id = '') => byId.has(external_id) && !kept.has(external_id)
  const chosen = items
    .filter(({ external_id }) => kept.has(external_id))
    .map(({ relationships, ...item }) => ({
      ...item,
      ...(relationships && {
        relationships: relationships.filter(({ target_external_id }) => !goes(target_external_id)),
      }),
    }))
  return { ...found, items: chosen, generic, ledger }
}
