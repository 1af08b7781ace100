import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { ImportItem, ImportRequest } from '../../shared/contracts/imports/imports.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { asObject } from '../command/request.ts'
import type { JsonObject } from '../document/pointers.ts'
import type { Change } from '../resources/versions.ts'
import { owns, unstated } from '../rules/field-owners.ts'
import { checkNotes, type Notes } from '../rules/notes.ts'

/** What an item changes in the fields of an existing resource. */

/** Importers set it on resources that their source no longer names; an item that reappears loses it. */
const MISSING_LABEL = 'signalbox/import-missing'

/** The name under which a source owns fields. */
export const managerOf = ({ source }: Pick<ImportRequest, 'source'>): string => `import:${source.name}`

export const changeOf = (row: ResourceRow, item: ImportItem, request: ImportRequest): Change => {
  const { labels: had, annotations: noted, desired_state: wanted } = row
  const before = { labels: had, annotations: noted, desired_state: wanted } as JsonObject
  const stated = asObject({
    labels: item.labels ?? {},
    annotations: item.annotations ?? {},
    desired_state: item.desired_state ?? {},
  })
  const manager = managerOf(request)
  const complete = request.options?.complete_fields === true
  const gone = complete ? unstated(row.field_owners, manager, before, stated) : {}
  const kept = asObject(mergePatch(before, gone))
  const { [MISSING_LABEL]: _, ...labels } = { ...asObject(kept.labels), ...item.labels } as Record<string, string>
  /** Whether the source has set this field before and no longer names it. */
  const resets = (field: 'owner' | 'display_name') => complete && owns(row.field_owners, `/${field}`, manager)
  const notes: Partial<Notes> = {
    labels,
    annotations: { ...asObject(kept.annotations), ...item.annotations } as Record<string, string>,
    ...(item.owner !== undefined ? { owner: item.owner } : resets('owner') && { owner: null }),
    ...displayed(row, item, resets('display_name')),
  }
  checkNotes(notes)
  return {
    ...notes,
    ...((item.desired_state || gone.desired_state) && {
      desired_state: asObject(mergePatch(kept.desired_state, item.desired_state ?? {})),
    }),
    ...(item.observed_state && { observed_state: asObject(mergePatch(row.observed_state, item.observed_state)) }),
    ...(item.lifecycle_status !== undefined && { lifecycle_status: item.lifecycle_status }),
    ...(item.provided_capabilities && { capability_changes: item.provided_capabilities }),
  }
}

/** A name is permanent (catalog.md 1): a new one in the source becomes the display name, until the old one is back. */
const displayed = (row: ResourceRow, { name, display_name }: ImportItem, resets: boolean): Partial<Notes> => {
  if (display_name !== undefined) return { display_name }
  if (name !== row.name.normalize('NFC')) return { display_name: name }
  return resets && row.display_name.normalize('NFC') !== name ? { display_name: row.name } : {}
}
