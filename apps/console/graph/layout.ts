import type { ELK, ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js'
import type { Graph } from '../api/types.ts'
import { workerUrl } from '../kit/worker-url.ts'
import { gateBox, gateOfBox, standingGates } from './gates.ts'

export const NODE_WIDTH = 200
export const NODE_HEIGHT = 56
const GROUP_PADDING = { top: 40, side: 16 }
const LIMIT_MS = 10_000
/** The number of drawings in the cache; an editor creates one with every change. */
const KEPT = 50

export type Point = { x: number; y: number }
export type Box = Point & {
  id: string
  width: number
  height: number
  parent?: string
  kind: 'node' | 'gate' | 'group' | 'folded'
}
export type Line = { id: string; from: string; to: string; points: Point[] }
/** The positions. `whole` is false if the layout timed out and columns by longest path were used. */
export type Drawing = { boxes: Box[]; lines: Line[]; whole: boolean }

let engine: Promise<ELK> | undefined
const known = new Map<string, Promise<Drawing>>()

/** The key of a layout. The nodes of a revision never change, but gates may be added. */
export const drawingKey = (name: string, graph: Graph, folded: ReadonlySet<string>): string =>
  [name, graph.plan_revision, ...graph.gates.map(({ gate_id }) => gateBox(gate_id)), ...[...folded].sort()].join(' ')

/** The drawing of a plan revision with the given groups folded; computed in a worker and cached. */
export const drawGraph = (
  key: string,
  graph: Graph,
  folded: ReadonlySet<string>,
  compared: boolean,
): Promise<Drawing> => {
  let drawing = known.get(key)
  if (drawing === undefined) {
    drawing = layout(graph, folded, compared)
    known.set(key, drawing)
    const [oldest] = known.keys()
    if (known.size > KEPT && oldest !== undefined) known.delete(oldest)
  }
  return drawing
}

/**
 * The drawn nodes, gates and folded groups, with the edges between them. In a comparison every dependency keeps its own
 * line, so gates are drawn beside the nodes.
 */
export const visibleGraph = (graph: Graph, folded: ReadonlySet<string>, compared = false) => {
  const group = new Map(graph.nodes.map((node) => [node.node_id, node.group ?? undefined]))
  const place = new Map(
    [...group].map(([id, within]) => [id, within !== undefined && folded.has(within) ? within : id]),
  )
  const placesOf = (ids: readonly string[]) => new Set(ids.flatMap((id) => place.get(id) ?? []))
  const edges = new Map<string, { from: string; to: string }>()
  const connect = (from: string | undefined, to: string | undefined) => {
    if (from !== undefined && to !== undefined && from !== to) edges.set(`${from}>${to}`, { from, to })
  }
  const gates = standingGates(graph).map(({ gate_id, first, behind }) => {
    const [from, to] = [placesOf(behind ?? []), placesOf(first)]
    // If both ends are in one folded group, the gate cannot be between them.
    const between = !compared && behind !== undefined && [...from].every((id) => !to.has(id))
    const around = new Set([...first, ...(between ? behind : [])].map((id) => group.get(id)))
    const [within] = around
    const parent = around.size === 1 && within !== undefined && !folded.has(within) ? within : undefined
    return { id: gateBox(gate_id), first, from: between ? from : new Set<string>(), to, between, parent }
  })
  const crossed = new Set(gates.flatMap(({ between, first }) => (between ? first : [])))
  for (const { node_id, depends_on } of graph.nodes)
    if (!crossed.has(node_id)) for (const id of depends_on) connect(place.get(id), place.get(node_id))
  for (const { id, from, to } of gates) {
    for (const one of from) connect(one, id)
    for (const one of to) connect(id, one)
  }
  return { place, edges, gates }
}

async function layout(graph: Graph, folded: ReadonlySet<string>, compared: boolean): Promise<Drawing> {
  const { place, edges, gates } = visibleGraph(graph, folded, compared)
  const groups = graph.groups.filter((group) => graph.nodes.some((node) => node.group === group.group_id))
  const boxOf = (id: string): ElkNode => ({ id, width: NODE_WIDTH, height: NODE_HEIGHT })
  const root: ElkNode = {
    id: 'root',
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': 'RIGHT',
      'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
      'elk.json.edgeCoords': 'ROOT',
      'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
      'elk.layered.spacing.nodeNodeBetweenLayers': '40',
      'elk.spacing.nodeNode': '16',
      'elk.edgeRouting': 'ORTHOGONAL',
    },
    children: gates.flatMap(({ id, parent }) => (parent === undefined ? [boxOf(id)] : [])),
    edges: [...edges].map(([id, { from, to }]): ElkExtendedEdge => ({ id, sources: [from], targets: [to] })),
  }
  const inGroup = new Set<string>()
  for (const group of groups) {
    const members = graph.nodes.filter((node) => node.group === group.group_id)
    for (const node of members) inGroup.add(node.node_id)
    root.children?.push(
      folded.has(group.group_id)
        ? boxOf(group.group_id)
        : {
            id: group.group_id,
            layoutOptions: {
              'elk.padding': `[top=${GROUP_PADDING.top},left=${GROUP_PADDING.side},bottom=${GROUP_PADDING.side},right=${GROUP_PADDING.side}]`,
            },
            children: [
              ...gates.flatMap(({ id, parent }) => (parent === group.group_id ? [boxOf(id)] : [])),
              ...members.map((node) => boxOf(node.node_id)),
            ],
          },
    )
  }
  for (const node of graph.nodes)
    if (!inGroup.has(node.node_id)) root.children?.push(boxOf(place.get(node.node_id) ?? node.node_id))
  try {
    const elk = await loadEngine()
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error('layout took too long')), LIMIT_MS),
    )
    return fromElk(await Promise.race([elk.layout(root), late]), folded)
  } catch {
    return columns(graph, folded, compared)
  }
}

/** Starts to load the layout worker, so that it is ready when the graph has been read. */
export const warmUp = (): void => void loadEngine().catch(() => undefined)

async function loadEngine(): Promise<ELK> {
  engine ??= Promise.all([import('elkjs/lib/elk-api.js'), import('elkjs/lib/elk-worker.min.js?url')])
    .then(([{ default: Elk }, { default: url }]) => new Elk({ workerFactory: () => new Worker(workerUrl(url)) }))
    .catch((cause: unknown) => {
      // Offline for a moment: the next drawing loads it again.
      engine = undefined
      throw cause
    })
  return engine
}

function fromElk(root: ElkNode, folded: ReadonlySet<string>): Drawing {
  const boxes: Box[] = []
  const walk = (node: ElkNode, parent?: string) => {
    for (const child of node.children ?? []) {
      const isGroup = (child.children ?? []).length > 0
      boxes.push({
        id: child.id,
        x: child.x ?? 0,
        y: child.y ?? 0,
        width: child.width ?? NODE_WIDTH,
        height: child.height ?? NODE_HEIGHT,
        kind: isGroup ? 'group' : kindOf(child.id, folded),
        ...(parent === undefined ? {} : { parent }),
      })
      if (isGroup) walk(child, child.id)
    }
  }
  walk(root)
  const lines = (root.edges ?? []).map((edge): Line => {
    const section = edge.sections?.[0]
    const points = section ? [section.startPoint, ...(section.bendPoints ?? []), section.endPoint] : []
    return { id: edge.id, from: edge.sources[0] ?? '', to: edge.targets[0] ?? '', points }
  })
  return { boxes, lines, whole: true }
}

const kindOf = (id: string, folded: ReadonlySet<string>): Box['kind'] =>
  folded.has(id) ? 'folded' : gateOfBox(id) === undefined ? 'node' : 'gate'

/** Columns by longest path: the fallback if the layout times out. Pure. */
export const columns = (graph: Graph, folded: ReadonlySet<string>, compared = false): Drawing => {
  const { place, edges, gates } = visibleGraph(graph, folded, compared)
  // In rank order, each gate before its first guarded node.
  const ids = [
    ...new Set(
      graph.nodes.flatMap(({ node_id }) => [
        ...gates.flatMap(({ id, first }) => (first.includes(node_id) ? [id] : [])),
        place.get(node_id) ?? node_id,
      ]),
    ),
  ]
  const column = new Map<string, number>(ids.map((id) => [id, 0]))
  // Nodes come in rank order, so one pass settles every longest path between unfolded nodes.
  for (let pass = 0; pass < (folded.size > 0 ? ids.length : 1); pass += 1) {
    let moved = false
    for (const id of ids)
      for (const { from, to } of edges.values()) {
        if (to !== id || (column.get(from) ?? 0) + 1 <= (column.get(to) ?? 0)) continue
        column.set(to, Math.min((column.get(from) ?? 0) + 1, ids.length))
        moved = true
      }
    if (!moved) break
  }
  const filled = new Map<number, number>()
  const boxes = ids.map((id): Box => {
    const at = column.get(id) ?? 0
    const row = filled.get(at) ?? 0
    filled.set(at, row + 1)
    const [x, y] = [at * (NODE_WIDTH + 40), row * (NODE_HEIGHT + 16)]
    return { id, x, y, width: NODE_WIDTH, height: NODE_HEIGHT, kind: kindOf(id, folded) }
  })
  const at = new Map(boxes.map((box) => [box.id, box]))
  const lines = [...edges].map(([id, { from, to }]): Line => {
    const [a, b] = [at.get(from), at.get(to)]
    const points =
      a && b
        ? [
            { x: a.x + a.width, y: a.y + a.height / 2 },
            { x: b.x, y: b.y + b.height / 2 },
          ]
        : []
    return { id, from, to, points }
  })
  return { boxes, lines, whole: false }
}
