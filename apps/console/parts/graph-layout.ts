import type { ELK, ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js'
import type { Graph } from '../api/types.ts'
import { workerUrl } from '../work/worker-url.ts'

export const NODE_WIDTH = 200
export const NODE_HEIGHT = 56
const GROUP_PADDING = { top: 40, side: 16 }
const LIMIT_MS = 10_000

export type Point = { x: number; y: number }
export type Box = Point & {
  id: string
  width: number
  height: number
  parent?: string
  kind: 'node' | 'group' | 'folded'
}
export type Line = { id: string; from: string; to: string; points: Point[] }
/** Where everything stands. `whole` is false when the layout did not finish in time and columns by longest path were used. */
export type Drawing = { boxes: Box[]; lines: Line[]; whole: boolean }

let engine: Promise<ELK> | undefined
const known = new Map<string, Promise<Drawing>>()

/** The drawing of a plan revision with the given groups folded; computed in a worker and kept. */
export const drawGraph = (key: string, graph: Graph, folded: ReadonlySet<string>): Promise<Drawing> => {
  const whole = `${key} ${graph.plan_revision} ${[...folded].sort().join(' ')}`
  let drawing = known.get(whole)
  if (drawing === undefined) {
    drawing = layout(graph, folded)
    known.set(whole, drawing)
  }
  return drawing
}

/** Nodes and folded groups as they are drawn, with the edges between them. */
export const visibleGraph = (graph: Graph, folded: ReadonlySet<string>) => {
  const place = new Map(
    graph.nodes.map((node) => [node.node_id, node.group && folded.has(node.group) ? node.group : node.node_id]),
  )
  const edges = new Map<string, { from: string; to: string }>()
  for (const node of graph.nodes) {
    for (const dependency of node.depends_on) {
      const [from, to] = [place.get(dependency), place.get(node.node_id)]
      if (from !== undefined && to !== undefined && from !== to) edges.set(`${from}>${to}`, { from, to })
    }
  }
  return { place, edges }
}

async function layout(graph: Graph, folded: ReadonlySet<string>): Promise<Drawing> {
  const { place, edges } = visibleGraph(graph, folded)
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
    children: [],
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
            children: members.map((node) => boxOf(node.node_id)),
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
    return columns(graph, folded)
  }
}

/** Begins to load the layout's worker, so that it stands ready when the graph has been read. */
export const warmUp = (): void => void loadEngine().catch(() => undefined)

async function loadEngine(): Promise<ELK> {
  engine ??= Promise.all([import('elkjs/lib/elk-api.js'), import('elkjs/lib/elk-worker.min.js?url')]).then(
    ([{ default: Elk }, { default: url }]) => new Elk({ workerFactory: () => new Worker(workerUrl(url)) }),
  )
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
        kind: isGroup ? 'group' : folded.has(child.id) ? 'folded' : 'node',
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

/** Columns by longest path: what is drawn when the layout does not come. Pure. */
export const columns = (graph: Graph, folded: ReadonlySet<string>): Drawing => {
  const { place, edges } = visibleGraph(graph, folded)
  const ids = [...new Set(graph.nodes.map((node) => place.get(node.node_id) ?? node.node_id))]
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
    const kind = folded.has(id) ? 'folded' : 'node'
    return { id, x: at * (NODE_WIDTH + 40), y: row * (NODE_HEIGHT + 16), width: NODE_WIDTH, height: NODE_HEIGHT, kind }
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
