import Type, { type Static } from 'typebox'
import { Closed, LINE, text } from '../shapes.ts'
import { nullable } from './changes.ts'
import { GroupKey } from './users.ts'

/** Searches that people save under a name (console.md 5.1). */
export const VIEW_LISTS = ['inbox', 'operations', 'resources'] as const
export type ViewList = (typeof VIEW_LISTS)[number]

const Name = text('Unhealthy in eu1', { minLength: 1, maxLength: 60, pattern: LINE })
export const ViewFilters = Type.Record(Type.String({ pattern: '^[a-z_]{1,32}$' }), Type.String({ maxLength: 2048 }), {
  additionalProperties: false,
  maxProperties: 10,
  description: 'The search parameters of the list, by name. The console leaves out those that it does not know.',
  examples: [{ health: 'unhealthy', region: 'eu1' }],
})
/** One of the person's own groups, whose members see the view; null for none. */
const Group = nullable(GroupKey)
const EXAMPLE = { list: 'resources', name: 'Unhealthy in eu1', filters: { health: 'unhealthy', region: 'eu1' } }

export const NewView = Closed(
  { list: Type.Enum([...VIEW_LISTS]), name: Name, filters: ViewFilters, group: Type.Optional(Group) },
  { examples: [EXAMPLE] },
)
export const ViewPatch = Closed(
  { name: Type.Optional(Name), filters: Type.Optional(ViewFilters), group: Type.Optional(Group) },
  { minProperties: 1, examples: [{ name: 'Unhealthy in Europe' }] },
)
export const ViewParams = Type.Object({ view_id: text('0195f0c2-0000-7000-8000-00000000000b', { format: 'uuid' }) })
export const SavedView = Type.Object({
  ...ViewParams.properties,
  list: Type.Enum([...VIEW_LISTS]),
  name: Name,
  filters: ViewFilters,
  group: Group,
  owner: nullable(text('eva', { description: 'Who shares it with a group of yours; null for your own.' })),
  version: Type.Integer({ description: 'Grows with each change; its ETag is this number in quotes.' }),
  created_at: Type.String({ format: 'date-time' }),
})
export type SavedView = Static<typeof SavedView>
export const SavedViews = Type.Object({ items: Type.Array(SavedView) })
