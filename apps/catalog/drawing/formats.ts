import type { CapabilityGraph, NeedsGraph } from '../../shared/contracts/topology/capability-graphs.ts'
import type { Graph } from '../../shared/contracts/topology/graphs.ts'

/** A graph as drawn: facts about the whole, and nodes and edges with the known members of each. */
export type Drawing = {
  facts: [string, string][]
  nodes: { id: string; label: string; data: Record<string, string | number>; cut?: boolean }[]
  edges: { id: string; from: string; to: string; label: string; data: Record<string, string | number> }[]
}

/** A graph as text for other tools. It contains cuts and age just as the JSON does. */
export const FORMATS = {
  graphml: { type: 'application/graphml+xml; charset=utf-8', write: (drawing: Drawing) => graphml(drawing) },
  dot: { type: 'text/vnd.graphviz; charset=utf-8', write: (drawing: Drawing) => dot(drawing) },
} as const

/** For the schema of a route that returns these formats. */
export const TEXT_TYPES = Object.values(FORMATS).map(({ type }) => type.replace(/;.*/, ''))

const ageOf = ({ watermark, time, lag_ms }: Graph['as_of']): [string, string][] => [
  ['watermark', watermark],
  ['as_of', time],
  ['lag_ms', String(lag_ms)],
]

/** `omitted` of a node counts neighbors that are not in the drawing. */
export const drawingOf = (graph: Graph): Drawing => {
  const { roots, truncated, frontier_omitted, rollup, as_of } = graph
  const omitted = new Map(graph.frontier.map((entry) => [entry.resource_id, entry.omitted]))
  return {
    facts: [
      ['roots', roots.join(' ')],
      ...Object.entries(truncated).map(([name, cut]): [string, string] => [`truncated_${name}`, String(cut)]),
      ...(rollup ? [['truncated_rollup', String(rollup.truncated)] as [string, string]] : []),
      ['frontier_omitted', String(frontier_omitted)],
      ...ageOf(as_of),
    ],
    nodes: graph.nodes.map(({ resource_id, ...node }) => {
      const missing = omitted.get(resource_id) ?? 0
      const label = missing > 0 ? `${node.name} (+${missing})` : node.name
      return { id: resource_id, label, data: { ...node, omitted: missing }, cut: missing > 0 }
    }),
    edges: graph.edges.map(({ relationship_id: id, type_key, from, to }) => {
      return { id, from, to, label: type_key, data: { type_key } }
    }),
  }
}

/** Draws a page of resources with their needs; `next_page_token` continues after it. */
export const drawingOfNeeds = ({ nodes, edges, next_page_token, as_of }: NeedsGraph): Drawing => ({
  facts: [['next_page_token', next_page_token ?? ''], ...ageOf(as_of)],
  nodes: nodes.map((node) => {
    if (node.kind === 'capability')
      return { id: node.id, label: node.title, data: { kind: node.kind, capability_key: node.capability_key } }
    if (node.kind === 'requirement') {
      const { requirement, state, resource_id } = node
      const { requirement_key, capability_key } = requirement
      const data = { kind: node.kind, state, resource_id, requirement_key, capability_key }
      return { id: node.id, label: `${requirement_key} (${state})`, data, cut: state === 'unsatisfied' }
    }
    const { id, kind, name, resource_id, type_key, lifecycle_status, health_status } = node
    return { id, label: name, data: { kind, resource_id, type_key, name, lifecycle_status, health_status } }
  }),
  edges: edges.map(({ type, from, to, provider_id, status, bound }, index) => ({
    id: `e${index}`,
    from,
    to,
    label: type,
    data: {
      type_key: type,
      ...(provider_id !== undefined && { provider_id }),
      ...(status !== undefined && { status }),
      ...(bound !== undefined && { bound: String(bound) }),
    },
  })),
})

/** Draws definitions and types with their counts. */
export const drawingOfDefinitions = ({ nodes, edges, as_of }: CapabilityGraph): Drawing => ({
  facts: ageOf(as_of),
  nodes: nodes.map((node) => {
    if (node.kind === 'type')
      return { id: node.id, label: node.title, data: { kind: node.kind, type_key: node.type_key } }
    const { id, kind, title, capability_key, providers, requirements } = node
    const { bound, satisfiable, unsatisfied } = requirements
    return {
      id,
      label: title,
      data: { kind, capability_key, providers: providers.total, bound, satisfiable, unsatisfied },
    }
  }),
  edges: edges.map(({ type, from, to, providers, requirements }, index) => ({
    id: `e${index}`,
    from,
    to,
    label: type,
    data: {
      type_key: type,
      ...(providers !== undefined && { providers }),
      ...(requirements && { needs: requirements.total }),
    },
  })),
})

const XML = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' } as Record<string, string>
/** Characters that XML 1.0 cannot hold, not even escaped: controls, lone surrogates, U+FFFE and U+FFFF. */
const NOT_XML = /[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu
const xml = (text: string): string => text.replace(NOT_XML, '\ufffd').replace(/[&<>"]/g, (one) => XML[one] as string)

/** The names of the known members of nodes or edges, and whether each is a number. */
const keysOf = (parts: Drawing['nodes'] | Drawing['edges']): Map<string, 'int' | 'string'> => {
  const keys = new Map<string, 'int' | 'string'>()
  for (const { data } of parts)
    for (const [name, value] of Object.entries(data)) keys.set(name, typeof value === 'number' ? 'int' : 'string')
  return keys
}

/** GraphML (graphml.graphdrawing.org). */
const graphml = ({ facts, nodes, edges }: Drawing): string => {
  const declared = (prefix: 'n' | 'e', of: 'node' | 'edge', parts: Drawing['nodes'] | Drawing['edges']) =>
    [...keysOf(parts)].map(
      ([name, type]) => `<key id="${prefix}_${name}" for="${of}" attr.name="${name}" attr.type="${type}"/>`,
    )
  const dataOf = (prefix: 'n' | 'e', data: Record<string, string | number>) =>
    Object.entries(data)
      .map(([name, value]) => `<data key="${prefix}_${name}">${xml(String(value))}</data>`)
      .join('')
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ...facts.map(([name]) => `<key id="g_${name}" for="graph" attr.name="${name}" attr.type="string"/>`),
    ...declared('n', 'node', nodes),
    ...declared('e', 'edge', edges),
    '<graph id="catalog" edgedefault="directed">',
    ...facts.map(([name, text]) => `<data key="g_${name}">${xml(text)}</data>`),
    ...nodes.map(({ id, data }) => `<node id="${xml(id)}">${dataOf('n', data)}</node>`),
    ...edges.map(
      ({ id, from, to, data }) =>
        `<edge id="${id}" source="${xml(from)}" target="${xml(to)}">${dataOf('e', data)}</edge>`,
    ),
    '</graph>',
    '</graphml>',
  ]
  return `${lines.join('\n')}\n`
}

const quoted = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`

/** Graphviz's language; a dashed border and a count show the neighbors omitted at a node. */
const dot = ({ facts, nodes, edges }: Drawing): string => {
  const dataOf = (data: Record<string, string | number>) =>
    Object.entries(data).map(([name, value]) => `, ${name}=${quoted(String(value))}`)
  const lines = [
    'digraph catalog {',
    ...facts.map(([name, text]) => `  ${name}=${quoted(text)};`),
    ...nodes.map(({ id, label, data, cut }) => {
      return `  ${quoted(id)} [label=${quoted(label)}${dataOf(data).join('')}${cut ? ', style=dashed' : ''}];`
    }),
    ...edges.map(
      ({ from, to, label, data }) =>
        `  ${quoted(from)} -> ${quoted(to)} [label=${quoted(label)}${dataOf(data).join('')}];`,
    ),
    '}',
  ]
  return `${lines.join('\n')}\n`
}
