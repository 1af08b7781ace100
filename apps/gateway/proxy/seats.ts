import type { ServerResponse } from 'node:http'
import { AppError } from '../../shared/errors.ts'
import { PRIORITIES } from '../../shared/process/priority.ts'
import type { MetricName, Telemetry } from '../../shared/telemetry.ts'

/** The classes that take seats, highest first; a class is known by its index here. */
export const SEATED = PRIORITIES.filter((priority) => priority !== 'exempt')
export type Seated = (typeof SEATED)[number]
export type BySeated = Record<Seated, number>

export const SEATS: BySeated = { stop: 12, enter: 16, decide: 24, write: 24, read: 12, batch: 4 }
export const QUEUES: BySeated = { stop: 64, enter: 64, decide: 128, write: 64, read: 88, batch: 8 }
const LONGEST_MS: BySeated = { stop: 2000, enter: 2000, decide: 2000, write: 1000, read: 2000, batch: 250 }

/** The refusal message of each class, followed by the time to wait. */
const REFUSALS: Record<Seated, string> = {
  stop: 'Too many people are stopping operations right now.',
  enter: 'Too many people are signing in right now. Deciding and stopping still work.',
  decide: 'Too many people are deciding right now. Stopping still works.',
  write: 'Too many people are making changes right now. Deciding and stopping still work.',
  read: 'Too many people are reading right now. Deciding and stopping still work.',
  batch: 'Too many large requests are running right now. Everything else still works.',
}

export type SeatOptions = {
  seats?: Partial<BySeated>
  queues?: Partial<BySeated>
  onRefused?: ((priority: Seated) => void) | undefined
  onWaited?: ((priority: Seated, ms: number) => void) | undefined
}

type Waiter = { flow: string; start: (seat: number) => void; refuse: () => void }
type Line = { flows: Map<string, Waiter[]>; length: number; most: number; seats: number; average_ms: number }

/** The weight of the latest request in the average. */
const LATEST = 0.1

/** By index in `SEATED`: seats, those taken, requests seated (anywhere), by flow, the queue. */
type Room = { seats: number[]; used: number[]; sitting: number[]; flows: Map<string, number>[]; lines: Line[] } & Pick<
  SeatOptions,
  'onRefused' | 'onWaited'
>

/** While a stop or a decision takes longer than this, only this many reads run beside it, plus one per other reader. */
const SLOW_MS = 250
const READS_BESIDE_SLOW = 3
const WRITE = SEATED.indexOf('write')
const READ = SEATED.indexOf('read')
const BATCH = SEATED.indexOf('batch')
/** At least this many reads of one person run at once; above that, at most half of the seats for reading. */
const READS_OF_ONE = 3

/**
 * The seats at one upstream. A class takes a free seat of its own or of a lower class, never of a higher one: each row
 * is a reserve, so readers cannot keep out those who decide. A request without a seat waits in a short queue. The queue
 * serves its flows (people, addresses) in turn, and the longest flow gives way when it is full; all else is refused at
 * once. Seats divide connections, not processors: while a stop or a decision is slow, few reads run beside it. A reader
 * with no read running still gets a seat, so that one person's many requests make nobody else wait.
 */
export const createSeats = ({ seats: own_seats, queues, onRefused, onWaited }: SeatOptions = {}) => {
  const seats = SEATED.map((priority) => own_seats?.[priority] ?? SEATS[priority])
  const used = SEATED.map(() => 0)
  const sumFrom = (place: number) => seats.slice(place).reduce((sum, count) => sum + count, 0)
  const lines = SEATED.map((priority, place): Line => {
    const most = queues?.[priority] ?? QUEUES[priority]
    return { flows: new Map(), length: 0, most, seats: sumFrom(place), average_ms: 0 }
  })
  const sitting = SEATED.map(() => 0)
  const room: Room = { seats, used, sitting, flows: SEATED.map(() => new Map()), lines, onRefused, onWaited }
  return {
    /** Takes a seat, at once if one is free; throws or rejects with 503 `overloaded`. */
    take: (priority: Seated, flow: string, res: ServerResponse): number | Promise<number> => {
      if (res.destroyed) throw gone()
      const place = SEATED.indexOf(priority)
      const seat = freeFor(room, place, flow)
      return seat < 0 ? wait(room, place, flow, res) : sit(room, place, flow, seat)
    },
    /** Gives a seat back after `held_ms`. */
    leave: (priority: Seated, flow: string, seat: number, held_ms: number): void => {
      const place = SEATED.indexOf(priority)
      const line = lines[place] as Line
      line.average_ms += LATEST * (held_ms - line.average_ms)
      used[seat] = (used[seat] as number) - 1
      count(room, place, flow, -1)
      pass(room)
    },
    used: (priority: Seated): number => used[SEATED.indexOf(priority)] as number,
    waiting: (priority: Seated): number => (lines[SEATED.indexOf(priority)] as Line).length,
  }
}
export type Seats = ReturnType<typeof createSeats>

export const gone = () => new Error('the client went away')

const sit = (room: Room, place: number, flow: string, seat: number): number => {
  room.used[seat] = (room.used[seat] as number) + 1
  count(room, place, flow, 1)
  return seat
}

const count = ({ sitting, flows }: Room, place: number, flow: string, by: 1 | -1): void => {
  sitting[place] = (sitting[place] as number) + by
  if (place < READ) return
  const own = flows[place] as Map<string, number>
  const reads = readsOf(own, flow) + by
  if (reads > 0) own.set(flow, reads)
  else own.delete(flow)
}

const readsOf = (flows: Map<string, number> | undefined, flow: string): number => flows?.get(flow) ?? 0

const hasSlow = ({ sitting, lines }: Room): boolean =>
  lines.some(({ average_ms }, place) => place < WRITE && (sitting[place] as number) > 0 && average_ms > SLOW_MS)

/** Whether a request must leave the processors to a slow stop or decision. */
const givesRoom = (room: Room, place: number, flow: string): boolean => {
  if (place < READ || !(room.flows[READ]?.has(flow) || room.flows[BATCH]?.has(flow))) return false
  const reads = room.sitting.slice(READ).reduce((sum, one) => sum + one, 0)
  return reads >= READS_BESIDE_SLOW && hasSlow(room)
}

/** Whether a reader leaves the other half of the seats to others. */
const hasHalf = ({ flows, lines }: Room, place: number, flow: string): boolean =>
  place >= READ && readsOf(flows[place], flow) >= Math.max(READS_OF_ONE, (lines[place] as Line).seats / 2)

/** Returns a free seat for a request of a class and flow; -1 if there is none. */
const freeFor = (room: Room, place: number, flow: string): number => {
  if (hasHalf(room, place, flow) || givesRoom(room, place, flow)) return -1
  const { seats, used } = room
  for (let seat = place; seat < seats.length; seat++) if ((used[seat] as number) < (seats[seat] as number)) return seat
  return -1
}

const refuse = (room: Room, place: number, flow: string): AppError => {
  const priority = SEATED[place] as Seated
  room.onRefused?.(priority)
  return overloadedBy(priority, retryMs(expectedMs(room, place, flow), priority))
}

/** Returns who gives way in a full queue: the last of the flow with the most entries, unless that is the newcomer's. */
const givesWay = ({ flows }: Line, flow: string): Waiter | undefined => {
  let longest: Waiter[] = []
  for (const waiters of flows.values()) if (waiters.length > longest.length) longest = waiters
  return longest.length > (flows.get(flow)?.length ?? 0) + 1 ? longest.at(-1) : undefined
}

/** Whether a newcomer's turn would come in time, and the queue has room for it. */
const hasRoom = (room: Room, place: number, flow: string): boolean => {
  if (expectedMs(room, place, flow) > LONGEST_MS[SEATED[place] as Seated]) return false
  const line = room.lines[place] as Line
  return line.length < line.most || givesWay(line, flow) !== undefined
}

const wait = (room: Room, place: number, flow: string, res: ServerResponse): Promise<number> => {
  const line = room.lines[place] as Line
  const priority = SEATED[place] as Seated
  if (!hasRoom(room, place, flow)) return Promise.reject(refuse(room, place, flow))
  if (line.length >= line.most) givesWay(line, flow)?.refuse()
  const since = performance.now()
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer)
      res.off('close', onClose)
      const waiters = line.flows.get(flow) as Waiter[]
      waiters.splice(waiters.indexOf(waiter), 1)
      if (waiters.length === 0) line.flows.delete(flow)
      line.length -= 1
    }
    const onClose = () => {
      leave()
      reject(gone())
    }
    const waiter: Waiter = {
      flow,
      start: (seat) => {
        leave()
        room.onWaited?.(priority, performance.now() - since)
        resolve(seat)
      },
      refuse: () => {
        leave()
        reject(refuse(room, place, flow))
      },
    }
    const timer = setTimeout(waiter.refuse, LONGEST_MS[priority])
    res.once('close', onClose)
    const waiters = line.flows.get(flow)
    if (waiters) waiters.push(waiter)
    else line.flows.set(flow, [waiter])
    line.length += 1
  })
}

/** Gives free seats to waiting requests, the highest class first; its flows are served in turn. */
const pass = (room: Room): void => {
  for (const [place, { flows }] of room.lines.entries()) while (flows.size > 0 && serve(room, place, flows)) {}
}

/** Gives a seat to the first flow that may have one; returns whether there was one. */
const serve = (room: Room, place: number, flows: Line['flows']): boolean => {
  for (const [flow, waiters] of flows) {
    const seat = freeFor(room, place, flow)
    if (seat < 0) continue
    flows.delete(flow)
    flows.set(flow, waiters)
    waiters[0]?.start(sit(room, place, flow, seat))
    return true
  }
  return false
}

/** Milliseconds until a newcomer's turn: its flow's waiters and as many of every other flow go first. */
const expectedMs = (room: Room, place: number, flow: string): number => {
  const { flows, average_ms, seats } = room.lines[place] as Line
  const turns = ((flows.get(flow)?.length ?? 0) + 1) * (flows.size + (flows.has(flow) ? 0 : 1))
  const running = place >= READ && hasSlow(room) ? READS_BESIDE_SLOW : Math.max(1, seats)
  return (turns * average_ms) / running
}

/** Returns when a refused request may come again, spread so that not all come at once. */
const retryMs = (expected_ms: number, priority: Seated): number => {
  const [least, most] = priority === 'batch' ? [5000, 30_000] : [1000, 5000]
  return Math.min(Math.max(expected_ms, least), most) * (0.75 + Math.random() / 2)
}

const overloadedBy = (priority: Seated, retry_after_ms: number): AppError =>
  new AppError(
    'unavailable',
    'overloaded',
    `${REFUSALS[priority]} Try again in ${Math.ceil(retry_after_ms / 1000)} s.`,
    { retryable: true, retry_after_ms },
  )

/** The metrics of the seats of all upstreams together. */
export const measureSeats = (telemetry: Telemetry) => {
  const refused = telemetry.counter('signalbox_priority_refused_total', 'Requests without a seat.', ['class'])
  const waited = telemetry.histogram('signalbox_priority_wait_seconds', 'Time until a seat was free.', ['class'])
  return {
    onRefused: (priority: Seated) => refused.inc({ class: priority }),
    onWaited: (priority: Seated, ms: number) => waited.observe({ class: priority }, ms / 1000),
    watch: (all: readonly Seats[]): void => {
      const show = (name: MetricName, help: string, read: (seats: Seats, priority: Seated) => number) => {
        const gauge = telemetry.gauge(name, help, ['class'])
        const collect = () => {
          for (const priority of SEATED)
            gauge.set(
              { class: priority },
              all.reduce((sum, seats) => sum + read(seats, priority), 0),
            )
        }
        Object.assign(gauge, { collect })
      }
      show('signalbox_priority_seats', 'Seats taken.', (seats, priority) => seats.used(priority))
      show('signalbox_priority_waiting', 'Requests that wait for a seat.', (seats, priority) => seats.waiting(priority))
    },
  }
}
