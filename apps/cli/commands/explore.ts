import type { DifferenceItem } from '../../shared/contracts/topology/difference.ts'
import { ASSUMPTIONS, type Impact } from '../../shared/contracts/topology/impact.ts'
import type { SearchResult } from '../../shared/contracts/topology/search.ts'
import { type Command, needed, text } from '../command.ts'
import { withQuery } from '../session/api.ts'
import { minute, short, word, zoned } from '../terminal/output.ts'

const pathOf = (id: string, what: string) => `/api/v1/resources/${encodeURIComponent(id)}/${what}`

/** Questions about many resources at once: searches, dependents, and differences between two times. */
export const exploreCommands: Command[] = [
  {
    name: 'resource search',
    takes: 'WORD [MORE…]',
    about: 'Searches names, labels, owners, relations and attributes by word prefix, best match first.',
    examples: ['resource search web eu1', 'resource search 10.20.30 --type infra.host'],
    options: {
      type: { type: 'string', about: 'one type only' },
      'owned-by': { type: 'string', value: 'RESOURCE', about: 'only resources of this team or person' },
      limit: { type: 'string', value: 'N', about: 'how many at most (20, up to 100)' },
    },
    run: async ({ api, out }, words, values) => {
      const q = words.join(' ')
      const [type_key, owned_by, limit] = ['type', 'owned-by', 'limit'].map((name) => text(values, name))
      const { items, more } = await api.get<SearchResult>(withQuery('/api/v1/search', { q, type_key, owned_by, limit }))
      out.list(items, 'resource_id', [
        ['id', ({ resource_id }) => resource_id],
        ['name', ({ display_name }) => display_name],
        ['type', ({ type_key }) => type_key],
        ['owner', ({ owner }) => owner ?? ''],
        ['health', ({ health_status }) => word(health_status)],
        ['found in', ({ matched }) => matched.join(', ')],
      ])
      if (more) out.note('More resources match. Add words, or --limit.')
    },
  },
  {
    name: 'resource impact',
    takes: 'RESOURCE',
    about: 'Lists the resources that would be affected if a resource failed, with the effect and the path to each.',
    examples: ['resource impact eu1-web-01 --distance 1', 'resource impact eu1-db-01 --assume gone'],
    options: {
      assume: { type: 'string', choices: ASSUMPTIONS, about: 'what becomes of it (unhealthy)' },
      distance: { type: 'string', value: 'N', about: 'steps from the resource at most' },
      limit: { type: 'string', value: 'N', about: 'how many at most (100, up to 1000)' },
    },
    run: async ({ api, out }, [id = ''], values) => {
      const [assume, max_distance, limit] = ['assume', 'distance', 'limit'].map((name) => text(values, name))
      const query = { assume, max_distance, limit }
      const { items, counts, truncated, without } = await api.get<Impact>(withQuery(pathOf(id, 'impact'), query))
      out.list(items, 'resource_id', [
        ['effect', ({ effect }) => word(effect)],
        ['distance', ({ distance }) => distance],
        ['id', ({ resource_id }) => resource_id],
        ['type', ({ type_key }) => type_key],
        ['health', ({ health_status }) => word(health_status)],
        ['path', ({ path }) => path.map((step) => `${step.relationship_type} ${step.resource_id ?? '…'}`).join(' > ')],
      ])
      const { total, hidden, by_effect } = counts
      const at_least = truncated.visited ? 'at least ' : ''
      out.note(
        `${at_least}${total} affected: ${by_effect.unhealthy} unhealthy, ${by_effect.degraded} degraded${hidden > 0 ? `; ${hidden} that you may not see` : ''}`,
      )
      if (!without) return
      for (const need of without.needs.filter(({ needed, left }) => left < needed))
        out.note(`unmet: ${need.capability_key} of ${need.resource_id}: ${need.needed} needed, ${need.left} left`)
      const unseen = without.hidden > 0 ? `; users that you may not see: ${without.hidden}` : ''
      const cut = without.cut ? '; only the first 1000 users were examined' : ''
      out.note(
        `${without.unmet} of ${without.needs.length} needs unmet${unseen}${cut}; resources that prevent its retirement: ${without.prevent_retiring}`,
      )
    },
  },
  {
    name: 'resource diff',
    takes: 'RESOURCE',
    about:
      'Lists the differences between two times in a resource and everything below it: what changed, by whom, by which operation.',
    examples: ['resource diff eu1 --from 2026-01-31T12:00:00Z', 'resource diff eu1 --from T1 --to T2 -o json'],
    options: {
      from: { type: 'string', value: 'TIME', about: 'the earlier time, RFC 3339 (required)' },
      to: { type: 'string', value: 'TIME', about: 'the later time; now by default' },
    },
    run: async ({ api, out, all }, [id = ''], values) =>
      out.list(
        await api.list<DifferenceItem>(
          pathOf(id, 'difference'),
          { from: needed(values, 'from'), to: text(values, 'to') },
          all,
        ),
        'resource_id',
        [
          ['id', ({ resource_id }) => resource_id],
          ['type', ({ type_key }) => type_key],
          ['kind', ({ kind }) => kind],
          ['changed', ({ changes, relationships }) => changedIn(changes, relationships)],
          ['by', ({ actors }) => actors.join(' ')],
          ['operations', ({ operation_ids }) => operation_ids.map(short).join(' ')],
          [zoned('last change'), ({ last_change_at }) => (last_change_at === null ? '' : minute(last_change_at))],
        ],
      ),
  },
]

const changedIn = (changes: DifferenceItem['changes'], relationships: DifferenceItem['relationships']): string =>
  [
    ...changes.map(({ path }) => path),
    ...relationships.map(({ op, type_key, to_id }) => `${op === 'added' ? '+' : '-'}${type_key} ${to_id ?? '…'}`),
  ].join(' ')
