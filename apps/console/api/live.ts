import type { Frame } from '../../shared/contracts/client/frames.ts'
import { accessToken, onPhase, onToken, renew, revoked, sessionPhase } from '../session/token.ts'
import { nextDelay, sleep } from '../session/wait.ts'
import { connectStream, type StreamEnd } from './stream.ts'

/**
 * Live updates of this browser (console.md section 4). The tab that holds the Web Lock `signalbox-stream` has the only
 * connection; the other tabs send it their topics and receive its frames. The next tab to take the lock resumes from
 * the last cursor that it saw.
 */
export type Connection = {
  mode: 'connecting' | 'live' | 'reconnecting' | 'polling' | 'offline'
  /** When this mode began, and when the shown data was last known to be complete, by `serverNow`. */
  since: number
  whole_at: number
  /** How far the server's clock is ahead of this device's; a tab of an earlier release does not say. */
  ahead_ms?: number
}
type Shared =
  | { kind: 'who' | 'retry' }
  | { kind: 'topics'; tab: string; topics: string[] }
  | { kind: 'gone'; tab: string }
  | { kind: 'frame'; frame: Frame; cursor: string | null }
  /** A leader of an older build leaves out what it asked. */
  | { kind: 'connection'; connection: Connection; asked?: string[]; served: string[] }

const REST_MS = 250
const MAX_TOPICS = 50
const POLL_AFTER_FAILURES = 3
const TRY_AGAIN_MS = 60_000
const BEAT_MS = 15_000
/** Browsers may delay the timers of a hidden tab, which may be the leader, to once a minute. */
const QUIET_MS = 90_000

const tab = crypto.randomUUID()
const channel = new BroadcastChannel('signalbox-live')
const mine = new Map<string, number>()
const others = new Map<string, string[]>()
const frameListeners = new Set<(frame: Frame) => void>()
const servedListeners = new Set<(topics: string[]) => void>()
const connectionListeners = new Set<() => void>()

let connection: Connection = { mode: 'connecting', since: Date.now(), whole_at: Date.now() }
/** The connection as this tab sees it: a tab polls if one of its topics found no room. */
let seen = connection
let served: string[] = []
/** The topics of the open connection, with those that the server refused: these are not asked for again. */
let asked: string[] = []
let cursor: string | null = null
let leading = false
let started = false
let rest: ReturnType<typeof setTimeout> | undefined
let quiet: ReturnType<typeof setTimeout> | undefined
let wake = (): void => undefined
let current = new AbortController()

/** Joins live updates, from the first signed-in page onward. */
export const startLive = (): void => {
  if (started) return
  started = true
  channel.addEventListener('message', (event: MessageEvent<Shared>) => hear(event.data))
  window.addEventListener('pagehide', () => say({ kind: 'gone', tab }))
  window.addEventListener('online', retryNow)
  window.addEventListener('offline', () => {
    setConnection('offline')
    current.abort()
  })
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible' && connection.mode !== 'live') retryNow()
  })
  onToken(reconnect)
  onPhase(reconnect)
  if (!navigator.onLine) setConnection('offline')
  expectLeader()
  void navigator.locks.request('signalbox-stream', lead)
}

/** The characters and the length of every topic; an address that was mistyped names none. */
const TOPIC = /^[a-z0-9:._/-]{1,160}$/

/** Keeps a topic live while it is held; returns a function that releases it. */
export const holdTopic = (topic: string): (() => void) => {
  if (!TOPIC.test(topic)) return () => undefined
  mine.set(topic, (mine.get(topic) ?? 0) + 1)
  topicsChanged()
  return () => {
    const count = (mine.get(topic) ?? 1) - 1
    if (count === 0) mine.delete(topic)
    else mine.set(topic, count)
    topicsChanged()
  }
}

export const onFrame = (listener: (frame: Frame) => void): (() => void) => {
  frameListeners.add(listener)
  return () => void frameListeners.delete(listener)
}

/** Called with the topics that have just become live or refused: earlier reads of them may have missed a change. */
export const onServed = (listener: (topics: string[]) => void): (() => void) => {
  servedListeners.add(listener)
  return () => void servedListeners.delete(listener)
}

/** The time by the server's clock, as far as it is known: pages show and compare the server's times by it. */
export const serverNow = (): number => Date.now() + (connection.ahead_ms || 0)

export const connectionNow = (): Connection => seen
export const onConnection = (listener: () => void): (() => void) => {
  connectionListeners.add(listener)
  return () => void connectionListeners.delete(listener)
}

export const retryNow = (): void => {
  if (connection.mode === 'offline' && navigator.onLine) setConnection('reconnecting')
  wake()
  say({ kind: 'retry' })
}

async function lead(): Promise<never> {
  leading = true
  say({ kind: 'who' })
  setInterval(tellFollowers, BEAT_MS)
  let failures = 0
  for (;;) {
    await ready()
    current = new AbortController()
    const end = await connectOnce(() => {
      failures = 0
    })
    failures = await afterEnd(end, failures)
  }
}

/** Waits for a signed-in person, a network and a topic. */
async function ready(): Promise<void> {
  while (sessionPhase().name !== 'signed_in' || !navigator.onLine || wanted().length === 0) await pause(5000)
}

function connectOnce(opened: () => void): Promise<StreamEnd> {
  const topics = wanted()
  const from = Date.now()
  return connectStream({
    topics,
    cursor,
    token: accessToken() ?? '',
    signal: current.signal,
    onOpen: opened,
    onHeard: () => {
      if (connection.mode === 'live') connection.whole_at = serverNow()
    },
    onFrame: (frame, at) => {
      if (at !== null) cursor = at
      if (frame.event === 'hello') greet(topics, frame.data, from)
      say({ kind: 'frame', frame, cursor: at })
      deliver(frame)
    },
  })
}

async function afterEnd(end: StreamEnd, failures: number): Promise<number> {
  if (end.cause === 'stopped') return failures
  if (end.cause === 'bye' && end.reason === 'revoked') {
    await revoked()
    return 0
  }
  const failed = failures + 1
  let wait_ms = 'retry_ms' in end ? end.retry_ms : nextDelay(failed)
  if (end.cause === 'unauthorised' || (end.cause === 'bye' && end.reason === 'token')) {
    const outcome = await renew(end.cause === 'unauthorised' ? accessToken() : null)
    if (outcome === 'ok') return failed
    wait_ms = typeof outcome === 'object' ? outcome.retry_after_ms : nextDelay(failed)
  }
  take([], [])
  const polls = end.cause === 'silent' || failed >= POLL_AFTER_FAILURES
  setConnection(polls ? 'polling' : 'reconnecting')
  await pause(polls ? TRY_AGAIN_MS : wait_ms)
  return failed
}

/** A pause that ends early when the network returns, the tab becomes visible, or a person asks. */
async function pause(ms: number): Promise<void> {
  await Promise.race([
    sleep(ms),
    new Promise<void>((resolve) => {
      wake = resolve
    }),
  ])
}

function greet(topics: string[], hello: { topics: string[]; server_time: string }, from: number): void {
  const at = Date.parse(hello.server_time)
  // The server wrote it after the request and before now: only a time outside of these tells a difference.
  connection.ahead_ms = Math.max(0, at - Date.now()) + Math.min(0, at - from)
  const news = take(topics, hello.topics)
  setConnection('live')
  tellServed(news)
}

/**
 * Returns the topics whose shown replies may be out of date: those that became live, and those that are refused from
 * now on, because the server refuses their replies as well.
 */
function take(topics: string[], accepted: string[]): string[] {
  const news = topics.filter((topic) =>
    accepted.includes(topic) ? !served.includes(topic) : served.includes(topic) || !asked.includes(topic),
  )
  asked = topics
  served = accepted
  return news
}

function tellServed(topics: string[]): void {
  if (topics.length > 0) for (const listener of servedListeners) listener(topics)
}

function wanted(): string[] {
  return [...new Set([...mine.keys(), ...[...others.values()].flat()])].sort().slice(0, MAX_TOPICS)
}

function topicsChanged(): void {
  say({ kind: 'topics', tab, topics: [...mine.keys()] })
  if (asked.length >= MAX_TOPICS) tellListeners()
  followTopics()
}

function followTopics(): void {
  clearTimeout(rest)
  rest = setTimeout(() => {
    if (leading && wanted().some((topic) => !asked.includes(topic))) reconnect()
  }, REST_MS)
}

function reconnect(): void {
  current.abort()
  wake()
}

function hear(message: Shared): void {
  if (message.kind === 'who') {
    others.clear()
    say({ kind: 'topics', tab, topics: [...mine.keys()] })
  } else if (message.kind === 'gone') others.delete(message.tab)
  else if (message.kind === 'topics') {
    others.set(message.tab, message.topics)
    if (leading) tellFollowers()
    followTopics()
  } else if (message.kind === 'retry') wake()
  else if (message.kind === 'frame' && !leading) {
    expectLeader()
    if (message.cursor !== null) cursor = message.cursor
    deliver(message.frame)
  } else if (message.kind === 'connection' && !leading) {
    expectLeader()
    const news = take(message.asked ?? message.served, message.served)
    connection = message.connection
    tellListeners()
    tellServed(news.filter((topic) => mine.has(topic)))
  }
}

/** A tab polls if no news comes from the leader, which may stand still. */
function expectLeader(): void {
  clearTimeout(quiet)
  quiet = setTimeout(() => {
    if (leading) return
    take([], [])
    setConnection('polling')
  }, QUIET_MS)
}

function deliver(frame: Frame): void {
  connection.whole_at = serverNow()
  for (const listener of frameListeners) listener(frame)
}

function setConnection(mode: Connection['mode']): void {
  const now = serverNow()
  const whole_at = mode === 'live' ? now : connection.whole_at
  if (connection.mode !== mode) connection = { ...connection, mode, since: now, whole_at }
  if (leading) tellFollowers()
  tellListeners()
}

function tellListeners(): void {
  const left_out = asked.length >= MAX_TOPICS && [...mine.keys()].some((topic) => !asked.includes(topic))
  seen = left_out && connection.mode === 'live' ? { ...connection, mode: 'polling' } : connection
  for (const listener of connectionListeners) listener()
}

const tellFollowers = (): void => say({ kind: 'connection', connection, asked, served })
const say = (message: Shared): void => channel.postMessage(message)
