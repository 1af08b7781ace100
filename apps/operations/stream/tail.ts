import type { Db } from '../../../db/client.ts'
import { type LogRef, listLogHeads } from '../../../db/operations/history/logs.ts'
import { listChangedResources, listChanges, RESOURCE_WINDOW, readLogEnds } from '../../../db/operations/history/tail.ts'
import type { Fence } from '../../../db/restore.ts'
import type { Uses } from '../deps.ts'
import { loadFrames } from './frames.ts'
import { type Cursor, isResumable } from './resume.ts'
import { followRights } from './rights.ts'
import type { Stream } from './stream.ts'

const POLL_MS = 50
const HEARTBEAT_MS = 15_000
const BATCH = 200
/** A reader further behind, or ahead after a restore, reloads instead: each row is a question about rights. */
const RESOURCES_BEHIND = 1000

/** Each stream with the numbers of the catalog's counter that it has seen recently. */
type Streams = Map<Stream, Set<number> | undefined>
type ForAll = (deliver: (stream: Stream) => Promise<void>) => Promise<void>

/**
 * The single tail of a process: reads this app's outbox by `pub_seq`, the followed logs and the projection's changes,
 * once for all streams. It sleeps while no stream is open.
 */
export const createTail = (deps: Uses<'config' | 'db' | 'fence' | 'lookback_s' | 'nats' | 'telemetry' | 'trust'>) => {
  const { db, telemetry } = deps
  const streams: Streams = new Map()
  /** The sessions of streams that are being opened. */
  const opening: string[] = []
  const open = telemetry.gauge('signalbox_sse_streams', 'Open live streams.')
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let closed = false
  /** What the fence said last about a restore of the database. */
  let told: string | undefined

  const forAll: ForAll = async (deliver) => {
    await Promise.all(
      [...streams.keys()].map((stream) =>
        deliver(stream).catch((error: unknown) => {
          telemetry.log.warn({ err: error }, 'a live stream could not be served')
          remove(stream)
          stream.end('shutdown', 1000)
        }),
      ),
    )
  }

  /** Readers who followed while the database was restored have seen what it has lost. */
  const turnRestore = async () => {
    const now = toldBy(await deps.fence())
    if (now === told) return
    const { last, catalog } = await readLogEnds(db)
    told = now
    await forAll(async (stream) => {
      Object.assign(stream.cursor, { p: last, c: catalog, l: {} })
      streams.set(stream, undefined)
      stream.resync()
    })
  }

  const turn = async () => {
    await turnRestore()
    while (streams.size > 0 && (await turnEvents(db, streams, forAll))) {}
    await turnResources(db, streams)
    await turnLogs(db, streams, forAll)
  }

  const run = () => {
    clearTimeout(timer)
    timer = undefined
    if (running || closed || streams.size === 0) return
    running = turn()
      .catch((error: unknown) => telemetry.log.warn({ err: error }, 'the own log could not be read'))
      .finally(() => {
        running = undefined
        if (!closed && streams.size > 0) timer = setTimeout(run, POLL_MS)
      })
  }

  const heartbeat = setInterval(() => {
    for (const stream of streams.keys()) stream.comment()
    void rights.compare()
  }, HEARTBEAT_MS).unref()

  const remove = (stream: Stream) => {
    streams.delete(stream)
    open.set(streams.size)
  }

  const rights = followRights(deps, () => [...streams.keys()])

  return {
    /** The position that a new stream starts at. */
    here: (): Promise<Cursor> => readLogEnds(db).then(({ last, catalog }) => ({ p: last, c: catalog, l: {} })),
    /** Lets a stream follow from its cursor. Returns false if it is too old or unknown: the client must reload. */
    join: async (stream: Stream): Promise<boolean> => {
      const [{ first, last, catalog }, fence] = await Promise.all([readLogEnds(db), deps.fence()])
      const { lost } = fence
      const { cursor } = stream
      const behind = catalog - cursor.c
      const near = !followsResources(stream) || (behind >= 0 && behind <= RESOURCES_BEHIND)
      const resumable = isResumable(cursor.p, { first, last, lost }) && near
      if (!resumable) Object.assign(cursor, { p: last, c: catalog, l: {} })
      if (closed) stream.end('shutdown', 1000)
      if (stream.isEnded()) return resumable
      if (streams.size === 0) told = toldBy(fence)
      streams.set(stream, undefined)
      open.set(streams.size)
      run()
      return resumable
    },
    leave: (stream: Stream) => {
      stream.gone()
      remove(stream)
    },
    /** The open streams of a session, and those that are being opened. */
    countOf: (session_id: string) =>
      [...[...streams.keys()].map(({ caller }) => caller.session_id), ...opening].filter((id) => id === session_id)
        .length,
    /** Counts a stream until `act` has opened it, so that many at the same moment do not pass the limit. */
    opens: async <T>(session_id: string, act: () => Promise<T>): Promise<T> => {
      opening.push(session_id)
      try {
        return await act()
      } finally {
        opening.splice(opening.indexOf(session_id), 1)
      }
    },
    close: async () => {
      closed = true
      clearTimeout(timer)
      clearInterval(heartbeat)
      for (const stream of streams.keys()) stream.end('shutdown', 1000)
      await running
    },
  }
}
export type Tail = ReturnType<typeof createTail>

const toldBy = ({ epoch, lost }: Fence): string => JSON.stringify({ epoch, lost })

const followsResources = ({ topics }: Stream): boolean => topics.resources || topics.resource_ids.size > 0

/** Reads from the position of the stream that is furthest behind; each stream takes the events that are new to it. */
const turnEvents = async (db: Db, streams: Streams, forAll: ForAll): Promise<boolean> => {
  const from = Math.min(...[...streams.keys()].map(({ cursor }) => cursor.p))
  const { changes, last, more } = await listChanges(db, from, { limit: BATCH })
  const live = await loadFrames(db, changes)
  await forAll(async (stream) => {
    // It joined since, further behind: the next turn begins there.
    if (stream.cursor.p < from) return
    for (const change of live) if (change.pub_seq > stream.cursor.p) await stream.deliver(change)
    stream.cursor.p = Math.max(stream.cursor.p, last)
  })
  return more
}

const turnResources = async (db: Db, streams: Streams) => {
  const followers = [...streams.keys()].filter(followsResources)
  if (followers.length === 0) return
  const from = Math.min(...followers.map(({ cursor }) => cursor.c)) - RESOURCE_WINDOW
  const rows = await listChangedResources(db, Math.max(0, from), RESOURCE_WINDOW * 2)
  for (const stream of followers) {
    const seen =
      streams.get(stream) ??
      new Set(rows.map(({ change_seq }) => change_seq).filter((change_seq) => change_seq <= stream.cursor.c))
    for (const row of rows) {
      if (seen.has(row.change_seq) || row.change_seq <= stream.cursor.c - RESOURCE_WINDOW) continue
      stream.cursor.c = Math.max(stream.cursor.c, row.change_seq)
      await stream.deliverResource(row)
    }
    if (streams.has(stream)) streams.set(stream, new Set(rows.map(({ change_seq }) => change_seq)))
  }
}

const turnLogs = async (db: Db, streams: Streams, forAll: ForAll) => {
  const refs = new Map<string, LogRef>()
  for (const { topics } of streams.keys()) for (const [topic, ref] of topics.logs) refs.set(topic, ref)
  if (refs.size === 0) return
  const heads = await listLogHeads(db, [...refs.values()])
  await forAll(async (stream) => {
    for (const head of heads)
      await stream.deliverLog(`log:${head.operation_id}/${head.node_id}/${head.attempt}`, head.last_seq)
  })
}
