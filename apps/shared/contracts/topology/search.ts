import Type, { type Static } from 'typebox'
import { many, nullable, ReadAsOf } from '../catalog/common.ts'
import { Health, manyHealths, OwnerId, ResourceListQuery, Scope } from '../catalog/resources.ts'
import { Closed, text } from '../shapes.ts'

const { lifecycle_status, drift } = ResourceListQuery.properties

export const SearchQuery = Closed({
  q: Type.String({
    minLength: 1,
    maxLength: 200,
    examples: ['web eu1 prod'],
    description: 'Words, matched by prefix; all must occur. Misspelled names are found if there is no other match.',
  }),
  type_key: many('Types, including derived types.'),
  owned_by: Type.Optional(OwnerId),
  region_id: Type.Optional(Type.String({ maxLength: 128 })),
  health_status: manyHealths,
  lifecycle_status,
  drift,
  include_retired: Type.Optional(Type.Boolean()),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
})
export type SearchQuery = Static<typeof SearchQuery>

export const SearchItem = Type.Object({
  resource_id: text('eu1-web-01'),
  type_key: text('fleet.host'),
  name: text('eu1-web-01'),
  display_name: text('eu1-web-01'),
  owner: nullable(Type.String()),
  scope: Scope,
  lifecycle_status: text('active'),
  health_status: Health,
  matched: Type.Array(Type.Enum(['name', 'label', 'relation', 'attribute', 'spelling']), {
    description:
      'Where the words occur: name (and id), label (owner and type too), relation (the names of what it points at), attribute (states and annotations), or a name that is spelled alike.',
  }),
  score: Type.Number({ description: 'Higher is better; comparable within one answer only.' }),
})
export type SearchItem = Static<typeof SearchItem>

/** Resources found by words, best first (catalog.md 7.1). */
export const SearchResult = Type.Object({
  items: Type.Array(SearchItem),
  more: Type.Boolean({ description: 'More results exist than `limit`: send more words.' }),
  as_of: ReadAsOf,
})
export type SearchResult = Static<typeof SearchResult>
