import { type InfiniteData, notifyManager, type Query, type QueryClient } from '@tanstack/react-query'
import { type Frame, placeOf } from '../../shared/contracts/client/frames.ts'
import { onPhase, sessionPhase } from '../session/token.ts'
import { createGather, isAbout } from './gather.ts'
import { connectionNow, onConnection, onFrame, onServed, retryNow } from './live.ts'
import type { Gate, Graph, Me, NodeRow, Operation, OperationRow, Page, PatchDetail } from './types.ts'

/** A cached reply: the change contained in its last full read, and the newest one applied to it. */
type Known = { read_at: number; fetched: number; applied: number }
type OperationFrame = Extract<Frame, { event: 'operation' | 'node' | 'gate' | 'patch' }>

/** How many of the newest frames of operations are kept for reads that they overtake. */
const KEPT = 2000
const POLL_MS = 5000
const POLL_HIDDEN_MS = 30_000

/** Applies live frames to the query cache, at most once per painted frame, and polls while the stream is away. */
export const applyLive = (client: QueryClient): void => {
  const known = new WeakMap<Query, Known>()
  const recent: OperationFrame[] = []
  let waiting: Frame[] = []
  onFrame((frame) => {
    waiting.push(frame)
    if (waiting.length === 1) schedule(flush)
  })
  const flush = () => {
    const frames = waiting
    waiting = []
    notifyManager.batch(() => {
      for (const frame of frames) {
        if (isOfOperation(frame)) recent.push(frame)
        applyFrame(client, known, frame)
      }
      recent.splice(0, recent.length - KEPT)
    })
  }
  onPhase(() => {
    if (sessionPhase().name === 'signed_out') recent.length = waiting.length = 0
  })
  onServed((topics) => refetchTopics(client, topics))
  client.getQueryCache().subscribe((event) => {
    if (event.type !== 'updated') return
    // A person who asks for the next page ends the read that news had asked for: it is owed.
    if (event.action.type === 'fetch' && event.query.state.isInvalidated && isPaging(event.query))
      return gather(client, event.query)
    // A read may be older than frames that came meanwhile: they are applied to it.
    if (event.action.type !== 'success' || event.action.manual) return
    const operation_id = operationOf(event.query)
    if (operation_id === undefined || seqOf(event.query.state.data) === undefined) return
    for (const frame of recent)
      if (frame.data.operation_id === operation_id) applyToQuery(client, known, event.query, frame)
  })
  let poll: ReturnType<typeof setTimeout> | undefined
  const tick = () => {
    if (connectionNow().mode !== 'polling') return
    if (sessionPhase().name === 'signed_in') void pollOnce()
    poll = setTimeout(tick, document.visibilityState === 'hidden' ? POLL_HIDDEN_MS : POLL_MS)
  }
  /** After the first answer following silence, the stream is retried at once instead of after its own pause. */
  let silent = true
  const pollOnce = async () => {
    const from = Date.now()
    await client.invalidateQueries({ predicate: (query) => !isReading(query) })
    const answered = client
      .getQueryCache()
      .getAll()
      .some(({ state }) => state.dataUpdatedAt > from)
    if (answered && silent) retryNow()
    silent = !answered
  }
  onConnection(() => {
    if (connectionNow().mode !== 'polling') silent = true
    clearTimeout(poll)
    if (connectionNow().mode === 'polling') poll = setTimeout(tick, POLL_MS)
  })
}

const OF_FRAME = new Set(['operation', 'node', 'gate', 'patch'])
const isOfOperation = (frame: Frame): frame is OperationFrame => OF_FRAME.has(frame.event)

function applyFrame(client: QueryClient, known: WeakMap<Query, Known>, frame: Frame): void {
  if (isOfOperation(frame)) {
    const { operation_id } = frame.data
    for (const query of client.getQueryCache().findAll({ predicate: (query) => operationOf(query) === operation_id }))
      applyToQuery(client, known, query, frame)
    if (frame.event === 'operation') applyToRows(client, frame.data)
    return
  }
  switch (frame.event) {
    case 'command':
      refetch(
        client,
        ([noun, id, command_id]) =>
          id === frame.data.operation_id &&
          (noun === 'operation' || (noun === 'command' && command_id === frame.data.command_id)),
      )
      return
    case 'inbox':
      client.setQueryData<Me>(['me'], (me) => {
        const counts = (frame.data.counts ?? {}) as Partial<Me['counts']>
        return me && { ...me, counts: { ...me.counts, ...counts } }
      })
      refetchTopics(client, ['inbox'])
      return
    case 'resource':
      refetch(client, (key) => key[0] === 'resources' || key[1] === frame.data.resource_id)
      refetch(client, isAbout('resources'), 2000)
      return
    case 'resync':
      refetchTopics(client, [frame.data.topic])
      return
    default:
  }
}

/** Brings a cached reply of an operation forward by one frame, or marks it for another read. */
function applyToQuery(client: QueryClient, known: WeakMap<Query, Known>, query: Query, frame: OperationFrame): void {
  const { change_seq } = frame.data
  if (query.state.data === undefined) return
  const state = stateOf(known, query)
  const place = state && placeOf(state, change_seq)
  if (state === undefined) followUnnumbered(client, query, frame)
  if (place === 'refetch') gather(client, query, change_seq)
  if (state === undefined || place !== 'patch') return
  state.applied = change_seq
  const { data, read } = patch(query.queryKey[0] as string, query.state.data, frame)
  if (data !== undefined) client.setQueryData(query.queryKey, data, { updatedAt: query.state.dataUpdatedAt })
  if (read) gather(client, query, change_seq)
}

/** The patched reply if the frame is enough; `read` if the reply must be read again. */
function patch(noun: string, data: unknown, frame: OperationFrame): { data?: unknown; read: boolean } {
  if (noun === 'operation') {
    if (frame.event === 'operation') return { data: patchOperation(data as Operation, frame.data), read: true }
    return { read: frame.event === 'gate' || frame.event === 'patch' }
  }
  if (noun === 'graph' || noun === 'revision') {
    const drawn = data as Graph
    const graph =
      frame.event === 'node'
        ? patchGraphNode(drawn, frame.data)
        : frame.event === 'gate'
          ? patchGraphGate(drawn, frame.data)
          : { read: frame.event === 'patch' }
    // Nodes and gates of a later revision are no news for an earlier one.
    return noun === 'graph' ? graph : { ...graph, read: false }
  }
  if (noun !== frame.event) return { read: false }
  return { data: noun === 'node' ? undefined : patchDecided(data as Decided, frame.data), read: true }
}

type Decided = Pick<Gate | PatchDetail, 'status' | 'decided'> &
  Partial<Pick<Gate, 'gate_id'> & Pick<PatchDetail, 'patch_id' | 'applied_revision'>>
/** A decision is shown at once; the votes and the allowed actions follow with the next read. */
function patchDecided(data: Decided, change: Record<string, unknown>): Decided | undefined {
  const { gate_id, patch_id, decided_by: by, decided_at: at } = change
  if (by == null || at == null || gate_id !== data.gate_id || patch_id !== data.patch_id) return undefined
  const { status, applied_revision }: Decided = { ...data, ...change }
  const decided = { by, at, command_id: null } as Decided['decided']
  return { ...data, status, decided, ...(applied_revision !== undefined && { applied_revision }) }
}

/** Only members that rows and single replies share; the allowed actions follow with the next read. */
function patchOperation(operation: Operation, change: Record<string, unknown>): Operation {
  const { status, progress, blocked_on, pause_reason, end_reason, started_at, ended_at, eta_at } = {
    ...operation,
    ...(change as Partial<Operation>),
  }
  return { ...operation, status, progress, blocked_on, pause_reason, end_reason, started_at, ended_at, eta_at }
}

function patchGraphNode(
  graph: Graph,
  change: { node_id: string } & Record<string, unknown>,
): { data?: Graph; read: boolean } {
  const at = graph.nodes.findIndex((node) => node.node_id === change.node_id)
  const node = graph.nodes[at]
  if (node === undefined) return { read: true }
  const { state, attempt, generation, exception } = { ...node, ...(change as Partial<typeof node>) }
  const { started_at, ended_at } = change as Partial<NodeRow>
  const ran_ms = started_at && ended_at ? Date.parse(ended_at) - Date.parse(started_at) : null
  const nodes = [...graph.nodes]
  nodes[at] = { ...node, state, attempt, generation, exception, ran_ms }
  return { data: { ...graph, nodes }, read: false }
}

function patchGraphGate(
  graph: Graph,
  change: { gate_id: string } & Record<string, unknown>,
): { data?: Graph; read: boolean } {
  // A gate that was added later, such as that of a freeze, is not known yet.
  if (typeof change.status !== 'string' || !graph.gates.some(({ gate_id }) => gate_id === change.gate_id))
    return { read: true }
  const state = change.status as Graph['gates'][number]['state']
  const gates = graph.gates.map((gate) => (gate.gate_id === change.gate_id ? { ...gate, state } : gate))
  return { data: { ...graph, gates }, read: false }
}

function patchNodeRows(
  data: InfiniteData<Page<NodeRow>>,
  change: { node_id: string } & Record<string, unknown>,
): InfiniteData<Page<NodeRow>> {
  const { operation_id: _operation, change_seq: _seq, event: _event, ...fields } = change
  return {
    ...data,
    pages: data.pages.map((page) => {
      const at = page.items.findIndex(({ node_id }) => node_id === change.node_id)
      const row = page.items[at]
      return row === undefined ? page : { ...page, items: page.items.with(at, { ...row, ...fields }) }
    }),
  }
}

/** Lists: known rows are patched in place; a new row appears with the next read of the list. */
function applyToRows(
  client: QueryClient,
  change: { operation_id: string; change_seq: number } & Record<string, unknown>,
): void {
  for (const query of client.getQueryCache().findAll({ queryKey: ['operations'] })) {
    const data = query.state.data as InfiniteData<Page<OperationRow>> | undefined
    if (data === undefined) continue
    const row = data.pages.flatMap((page) => page.items).find((item) => item.operation_id === change.operation_id)
    if (row === undefined || row.change_seq + 1 < change.change_seq) gather(client, query, ANY, 2000)
    if (row === undefined || row.change_seq >= change.change_seq) continue
    const pages = data.pages.map((page) => ({
      ...page,
      items: page.items.map((item) => (item === row ? { ...item, ...change } : item)),
    }))
    client.setQueryData(query.queryKey, { ...data, pages }, { updatedAt: query.state.dataUpdatedAt })
  }
}

const OF_OPERATION = new Set([
  'operation',
  'graph',
  'revision',
  'nodes',
  'node',
  'gate',
  'patches',
  'patch',
  'timeline',
  'evidence',
  'artifacts',
  'command',
])

function operationOf(query: Query): string | undefined {
  const [noun, id] = query.queryKey
  return typeof noun === 'string' && OF_OPERATION.has(noun) && typeof id === 'string' ? id : undefined
}

/** Replies that do not name the change they contain: their rows are patched at once and read again later. */
function followUnnumbered(client: QueryClient, query: Query, frame: OperationFrame): void {
  const noun = String(query.queryKey[0])
  if (noun === 'nodes' && frame.event === 'node') {
    const rows = patchNodeRows(query.state.data as InfiniteData<Page<NodeRow>>, frame.data)
    client.setQueryData(query.queryKey, rows, { updatedAt: query.state.dataUpdatedAt })
    // Each of its pages is read again, and its rows are already patched.
    gather(client, query, ANY, 2000)
  } else if (noun === 'patches' && frame.event === 'patch') gather(client, query)
  else if (noun === 'timeline' || noun === 'evidence' || noun === 'artifacts') gather(client, query, ANY, 1000)
}

/** The change that a full reply contains, if it names one. */
function seqOf(data: unknown): number | undefined {
  const seq = (data as { change_seq?: unknown } | undefined)?.change_seq
  return typeof seq === 'number' ? seq : undefined
}

function stateOf(known: WeakMap<Query, Known>, query: Query): Known | undefined {
  const seq = seqOf(query.state.data)
  if (seq === undefined) return undefined
  const state = known.get(query)
  if (state !== undefined && state.read_at === query.state.dataUpdatedAt) return state
  const fresh = { read_at: query.state.dataUpdatedAt, fetched: seq, applied: seq }
  known.set(query, fresh)
  return fresh
}

/** News that names no change: only a read that begins after it has it. */
const ANY = Number.POSITIVE_INFINITY
/** The newest change that a query is to be read again for. */
const wanted = new WeakMap<Query, number>()
/** Reads a query again, by `createGather`, unless a read that was on its way brings the change `upTo`. */
function gather(client: QueryClient, query: Query, upTo = ANY, after_ms?: number): void {
  wanted.set(query, Math.max(wanted.get(query) ?? 0, upTo))
  const read = () => {
    const brought = (seqOf(query.state.data) ?? 0) >= (wanted.get(query) ?? ANY)
    wanted.delete(query)
    if (!brought) void client.invalidateQueries({ predicate: (candidate) => candidate === query })
  }
  const { pages } = (query.state.data ?? {}) as Partial<InfiniteData<unknown>>
  soon(query, read, after_ms, pages?.length)
}

/**
 * Another read would end one that is on its way and begin it anew, so it comes after it: where an answer takes longer
 * than news stays away, none would ever arrive. A read that is being repeated after a failure may be replaced.
 */
const soon = createGather<Query>(Date.now, isReading)
function isReading({ state: { fetchStatus, fetchFailureCount } }: Query): boolean {
  return fetchStatus === 'fetching' && fetchFailureCount === 0
}

/** Whether a further page of a list is on its way. */
function isPaging({ state: { fetchStatus, fetchMeta } }: Query): boolean {
  return fetchStatus !== 'idle' && fetchMeta?.fetchMore !== undefined
}

function refetch(client: QueryClient, matches: (key: readonly unknown[]) => boolean, after_ms?: number): void {
  for (const query of client.getQueryCache().findAll({ predicate: (query) => matches(query.queryKey) }))
    gather(client, query, ANY, after_ms)
}

function refetchTopics(client: QueryClient, topics: string[]): void {
  for (const topic of topics) {
    const [noun, id] = [topic.split(':')[0], topic.slice(topic.indexOf(':') + 1)]
    if (noun === 'operation') refetch(client, (key) => OF_OPERATION.has(String(key[0])) && key[1] === id)
    else if (noun === 'resource') refetch(client, (key) => key[1] === id)
    else refetch(client, isAbout(noun))
  }
}

/** With the next paint; a tab that is hidden before it would wait for that until it is shown again. */
const schedule = (work: () => void): void => {
  let done = false
  const once = () => {
    if (!done) work()
    done = true
  }
  if (document.visibilityState === 'visible') requestAnimationFrame(once)
  setTimeout(once, 250)
}
