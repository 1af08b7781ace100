import type { Graph } from '../../shared/contracts/catalog/graphs.ts'

/** A graph as text for other tools. Cuts and age stand in it as they stand in the JSON. */
export const FORMATS = {
  graphml: { type: 'application/graphml+xml; charset=utf-8', write: (graph: Graph) => graphml(graph) },
  dot: { type: 'text/vnd.graphviz; charset=utf-8', write: (graph: Graph) => dot(graph) },
} as const

const XML = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' } as Record<string, string>
const xml = (text: string): string => text.replace(/[&<>"]/g, (one) => XML[one] as string)

const NODE_KEYS = ['type_key', 'name', 'lifecycle_status', 'health_status', 'depth', 'degree', 'omitted'] as const

/** What holds for the whole graph, as name and text. */
const facts = ({ roots, truncated, frontier_omitted, as_of }: Graph): [string, string][] => [
  ['roots', roots.join(' ')],
  ...Object.entries(truncated).map(([name, cut]): [string, string] => [`truncated_${name}`, String(cut)]),
  ['frontier_omitted', String(frontier_omitted)],
  ['watermark', as_of.watermark],
  ['as_of', as_of.time],
  ['lag_ms', String(as_of.lag_ms)],
]

/** GraphML (graphml.graphdrawing.org); `omitted` of a node counts neighbours that are not in the file. */
const graphml = (graph: Graph): string => {
  const omitted = new Map(graph.frontier.map((entry) => [entry.resource_id, entry.omitted]))
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ...facts(graph).map(([name]) => `<key id="g_${name}" for="graph" attr.name="${name}" attr.type="string"/>`),
    ...NODE_KEYS.map((name) => {
      const type = ['depth', 'degree', 'omitted'].includes(name) ? 'int' : 'string'
      return `<key id="n_${name}" for="node" attr.name="${name}" attr.type="${type}"/>`
    }),
    '<key id="e_type_key" for="edge" attr.name="type_key" attr.type="string"/>',
    '<graph id="catalog" edgedefault="directed">',
    ...facts(graph).map(([name, text]) => `<data key="g_${name}">${xml(text)}</data>`),
    ...graph.nodes.map((node) => {
      const data = NODE_KEYS.map((name) => {
        const value = name === 'omitted' ? (omitted.get(node.resource_id) ?? 0) : node[name]
        return `<data key="n_${name}">${xml(String(value))}</data>`
      })
      return `<node id="${xml(node.resource_id)}">${data.join('')}</node>`
    }),
    ...graph.edges.map(
      ({ relationship_id, type_key, from, to }) =>
        `<edge id="${relationship_id}" source="${xml(from)}" target="${xml(to)}"><data key="e_type_key">${xml(type_key)}</data></edge>`,
    ),
    '</graph>',
    '</graphml>',
  ]
  return `${lines.join('\n')}\n`
}

const quoted = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`

/** Graphviz's language; what is cut off at a node is told by a dashed border and the number that is missing. */
const dot = (graph: Graph): string => {
  const omitted = new Map(graph.frontier.map((entry) => [entry.resource_id, entry.omitted]))
  const lines = [
    'digraph catalog {',
    ...facts(graph).map(([name, text]) => `  ${name}=${quoted(text)};`),
    ...graph.nodes.map(({ resource_id, name, type_key, lifecycle_status, health_status }) => {
      const missing = omitted.get(resource_id)
      const label = missing ? `${name} (+${missing})` : name
      const style = missing ? ', style=dashed' : ''
      return `  ${quoted(resource_id)} [label=${quoted(label)}, type_key=${quoted(type_key)}, lifecycle_status=${quoted(lifecycle_status)}, health_status=${quoted(health_status)}${style}];`
    }),
    ...graph.edges.map(({ type_key, from, to }) => `  ${quoted(from)} -> ${quoted(to)} [label=${quoted(type_key)}];`),
    '}',
  ]
  return `${lines.join('\n')}\n`
}
