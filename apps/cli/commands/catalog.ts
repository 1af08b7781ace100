import type { Static } from 'typebox'
import { stringify } from 'yaml'
import type { CapabilityDefinition } from '../../shared/contracts/catalog/capabilities.ts'
import type { ResourceType } from '../../shared/contracts/catalog/types.ts'
import type { TopologyGraph, TopologyList } from '../../shared/contracts/topology/topology.ts'
import { type Command, text } from '../command.ts'
import { missing } from '../errors.ts'
import { withQuery } from '../session/api.ts'
import { word } from '../terminal/output.ts'

type Place = Static<typeof TopologyList>['items'][number]
const LEVELS = ['region', 'datacenter', 'layer', 'segment']
const asYaml = (body: unknown): string[] => stringify(body).trimEnd().split('\n')

export const catalogCommands: Command[] = [
  {
    name: 'type list',
    about: 'Lists resource types with their packs.',
    examples: ['type list --all'],
    run: async ({ api, out, all }) =>
      out.list(await api.list<ResourceType>('/api/v1/resource-types', {}, all), 'type_key', [
        ['type', ({ type_key }) => type_key],
        ['title', ({ title }) => title],
        ['from', ({ derived_from }) => derived_from],
        ['pack', ({ pack, pack_version }) => `${pack}@${pack_version}`],
        ['writes', ({ writes, abstract }) => (abstract ? 'none: a base' : writes)],
        ['actions', ({ actions }) => actions.map(({ action_key }) => action_key).join(' ')],
      ]),
  },
  {
    name: 'type show',
    takes: 'TYPE',
    about: 'Shows one type: lifecycle, schemas, relationships, capabilities, actions.',
    examples: ['type show fleet.host'],
    run: async ({ api, out }, [key = '']) =>
      out.one(await api.get<ResourceType>(`/api/v1/resource-types/${encodeURIComponent(key)}`), 'type_key', asYaml),
  },
  {
    name: 'topology list',
    about: 'Lists the places of one --level (default: region), with their resources.',
    examples: ['topology list', 'topology list --level segment --region eu1'],
    options: {
      level: { type: 'string', choices: LEVELS, about: 'the level of places' },
      region: { type: 'string', about: 'places of this region only' },
      datacenter: { type: 'string', about: 'places of this datacenter only' },
    },
    run: async ({ api, out, all }, _, values) => {
      const level = text(values, 'level') ?? 'region'
      const within = { region_id: text(values, 'region'), datacenter_id: text(values, 'datacenter') }
      out.list(await api.list<Place>(`/api/v1/topology/${level}s`, within, all), 'resource_id', [
        [level, ({ resource_id }) => resource_id],
        ['health', ({ health_status }) => word(health_status)],
        ['resources', ({ counts }) => counts.resources],
        ['by health', ({ counts }) => countsOf(counts.by_health)],
      ])
    },
  },
  {
    name: 'topology show',
    takes: '[REGION]',
    about: 'Shows the places as a tree, of all regions or of one.',
    examples: ['topology show', 'topology show eu1'],
    run: async ({ api, out }, [region_id]) => {
      const graph = await api.get<TopologyGraph>(withQuery('/api/v1/topology/graph', { region_id }))
      if (region_id !== undefined && graph.nodes.length === 0)
        throw missing(`No region is called ${JSON.stringify(region_id)}.`, 'See: signalbox topology list')
      out.one(graph, ({ nodes }) => nodes.map(({ resource_id }) => resource_id).join('\n'), treeLines)
    },
  },
  {
    name: 'capability list',
    about: 'Lists definitions of capabilities with the number of their providers.',
    examples: ['capability list'],
    run: async ({ api, out, all }) =>
      out.list(await api.list<CapabilityDefinition>('/api/v1/capabilities/definitions', {}, all), 'capability_key', [
        ['capability', ({ capability_key }) => capability_key],
        ['title', ({ title }) => title],
        ['version', ({ version }) => version],
        ['sharing', ({ sharing, unit }) => (unit ? `${sharing}, ${unit}` : sharing)],
        ['providers', ({ providers }) => providers.total],
        ['by status', ({ providers }) => countsOf(providers.by_status)],
      ]),
  },
  {
    name: 'capability show',
    takes: 'CAPABILITY',
    about: 'Shows one definition: attributes, matching rules, providers by status and region.',
    examples: ['capability show compute.slots'],
    run: async ({ api, out }, [key = '']) =>
      out.one(
        await api.get<CapabilityDefinition>(`/api/v1/capabilities/definitions/${encodeURIComponent(key)}`),
        'capability_key',
        asYaml,
      ),
  },
]

const countsOf = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ')

/** Each place under its container; an edge of containment points from the content to the container. */
const treeLines = ({ nodes, edges, truncated }: TopologyGraph): string[] => {
  const contained = edges.filter(({ type_key }) => type_key === 'contained_in')
  const parents = new Map(contained.map(({ from, to }) => [from, to]))
  const known = new Set(nodes.map(({ resource_id }) => resource_id))
  const below = Map.groupBy(nodes, ({ resource_id }) => {
    const parent = parents.get(resource_id)
    return parent !== undefined && known.has(parent) ? parent : ''
  })
  const linesOf = (parent: string, depth: number): string[] =>
    (below.get(parent) ?? []).flatMap(({ resource_id, type_key, health_status, counts }) => [
      `${'  '.repeat(depth)}${resource_id}   ${type_key.split('.').at(-1)}   ${word(health_status)}   ${counts.resources} resource${counts.resources === 1 ? '' : 's'}`,
      ...linesOf(resource_id, depth + 1),
    ])
  const lines = linesOf('', 0)
  if (lines.length === 0) return ['No places yet.']
  return truncated.nodes ? [...lines, '… there are more: name a REGION'] : lines
}
