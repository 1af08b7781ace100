import { expect, it } from 'vitest'
import { differencesOf, worded } from '../../apps/console/versions/differences.ts'
import { resource } from '../../apps/console/words/catalog/resource.ts'
import { resource as inGerman } from '../../apps/console/words-de/catalog/resource.ts'
import { ResourceDocument } from '../../apps/shared/contracts/catalog/resources.ts'

const state = (desired_state: Record<string, unknown>, labels: Record<string, string> = {}) => ({
  ...{ name: 'web', display_name: null, lifecycle_status: 'active', owner: null, parent_id: null },
  ...{ labels, desired_state, observed_state: {} },
})
/** Two states whose counters differ, which is not a change. */
const of = (before: object | undefined, after: object) =>
  differencesOf(before && { ...before, version: 1 }, { ...after, version: 2 }).map(
    ({ path, before: was, after: is }) => [path, was, is],
  )

it('compares two versions of a resource by their leaves: added, removed, changed, and lists as a whole', () => {
  const before = state({ release: '1', disk: { size: 1, kind: 'ssd' }, ports: [1, 2] }, { tier: 'gold' })
  const after = state({ release: '2', disk: { size: 1 }, ports: [2, 1], zone: 'a' })
  expect(of(before, after)).toEqual([
    ['/desired_state/disk/kind', 'ssd', null],
    ['/desired_state/ports', [1, 2], [2, 1]],
    ['/desired_state/release', '1', '2'],
    ['/desired_state/zone', null, 'a'],
    ['/labels/tier', 'gold', null],
  ])
  expect(of(before, structuredClone(before))).toEqual([])
  expect(of(undefined, state({ release: '1' }))).toEqual([
    ['/desired_state/release', null, '1'],
    ['/lifecycle_status', null, 'active'],
    ['/name', null, 'web'],
  ])
})

it('names every member that a version can change in both languages; deeper keys stay as they are', () => {
  const members = Object.keys(ResourceDocument.properties).filter(
    (member) => of({ [member]: 'a' }, { [member]: 'b' }).length > 0,
  )
  // The catalog adds these two to the paths of a version.
  const all = [...members, 'relationships', 'provided_capabilities']
  const { fields } = resource.versions
  expect(all.filter((member) => !Object.hasOwn(fields, member))).toEqual([])
  expect(Object.keys(inGerman.versions.fields)).toEqual(Object.keys(fields))
  expect(Object.values(fields).filter((word) => word.includes('_'))).toEqual([])
  expect(worded('/provided_capabilities')).toBe('/provided capabilities')
  expect(worded('/desired_state/parent_id')).toBe('/desired/parent_id')
  expect(worded('/constructor/name')).toBe('/constructor/name')
})
