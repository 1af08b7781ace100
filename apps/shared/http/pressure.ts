import { totalmem } from 'node:os'
import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { loadConfig, settings } from '../config.ts'
import { overloaded } from '../errors.ts'
import { PRIORITIES, type Priority } from '../process/priority.ts'
import type { Telemetry } from '../telemetry.ts'
import type { EdgeCodes } from './edge-codes.ts'

/** The purpose of a request: to read, to write, to act on running work, or to stop it. */
export type ActionKind = 'R' | 'W' | 'A' | 'S'

/** The header in which the gateway passes the class of a request to the apps; no client can send it. */
export const PRIORITY_HEADER = 'x-priority'

const OF_KIND: Record<ActionKind, Priority> = { S: 'stop', A: 'decide', W: 'write', R: 'read' }

/** Returns the class that the gateway stated, else the one of the kind of action. */
export const priorityOf = (stated: string | string[] | undefined, kind: ActionKind): Priority =>
  PRIORITIES.find((priority) => priority === stated) ?? OF_KIND[kind]

const SAMPLE_MS = 1000
/** The histogram measures the time between two samples, so this much of it is no delay. */
const LOOK_MS = 100
/** Delay and utilization count only after this many samples in a row: one slow second is no overload. */
const SAMPLES = 5

export const schema = Type.Object({
  SIGNALBOX__PRESSURE__IN_FLIGHT: settings.integer(
    'The requests in flight at which an app begins to shed load.',
    400,
    1,
  ),
  SIGNALBOX__PRESSURE__DELAY_MS: settings.integer(
    'The delay of the event loop at which an app begins to shed load, in ms.',
    250,
    10,
  ),
  SIGNALBOX__PRESSURE__UTILISATION: Type.Number({
    default: 0.95,
    exclusiveMinimum: 0,
    maximum: 1,
    description: 'The utilization of the event loop at which an app begins to shed load.',
  }),
  SIGNALBOX__PRESSURE__RSS_SHARE: Type.Number({
    default: 0.8,
    exclusiveMinimum: 0,
    maximum: 1,
    description: 'The share of the memory at which an app begins to shed load.',
  }),
})

export type Bounds = { in_flight: number; delay_ms: number; utilisation: number; rss_share: number }

/** Reads the bounds of this process from the environment; an app may override them. */
export const loadBounds = (own: Partial<Bounds> = {}): Bounds => {
  const read = loadConfig(schema)
  return {
    in_flight: read.SIGNALBOX__PRESSURE__IN_FLIGHT,
    delay_ms: read.SIGNALBOX__PRESSURE__DELAY_MS,
    utilisation: read.SIGNALBOX__PRESSURE__UTILISATION,
    rss_share: read.SIGNALBOX__PRESSURE__RSS_SHARE,
    ...own,
  }
}

/** The load of this process: what persisted over the last seconds, and the memory it uses now. */
export type Strain = { delay_ms: number; utilisation: number; rss_share: number }

let sampling: (() => Strain) | undefined

/** Measures once per process, however many listeners ask. */
const strainOfProcess = (): (() => Strain) => {
  if (sampling) return sampling
  const delay = monitorEventLoopDelay({ resolution: LOOK_MS })
  delay.enable()
  const memory = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())
  const delays: number[] = []
  const utilisations: number[] = []
  let before: EventLoopUtilization = performance.eventLoopUtilization()
  let rss = 0
  const keep = (values: number[], value: number) => {
    values.push(value)
    if (values.length > SAMPLES) values.shift()
  }
  setInterval(() => {
    const now = performance.eventLoopUtilization()
    keep(utilisations, performance.eventLoopUtilization(now, before).utilization)
    keep(delays, Math.max(0, delay.percentile(99) / 1e6 - LOOK_MS))
    before = now
    delay.reset()
    rss = process.memoryUsage.rss()
  }, SAMPLE_MS).unref()
  const lasting = (values: number[]) => (values.length < SAMPLES ? 0 : Math.min(...values))
  sampling = () => ({ delay_ms: lasting(delays), utilisation: lasting(utilisations), rss_share: rss / memory })
  return sampling
}

const exceeds = (value: number, bound: number, twice = 2 * bound): 0 | 1 | 2 =>
  value > twice ? 2 : value > bound ? 1 : 0

type Level = 0 | 1 | 2 | 3

/**
 * Returns the refused classes, from the bottom. 1: large requests, if the processor is busy all the time, because seats
 * bound how many are in flight. 2: also reading and writing. 3: also deciding and signing in, at twice the bounds.
 */
const levelOf = (in_flight: number, strain: Strain, bounds: Bounds): Level => {
  const twice = Math.max(
    exceeds(in_flight, bounds.in_flight),
    exceeds(strain.delay_ms, bounds.delay_ms),
    exceeds(strain.rss_share, bounds.rss_share, bounds.rss_share + (1 - bounds.rss_share) / 2),
  )
  if (twice > 0) return (1 + twice) as Level
  return strain.utilisation > bounds.utilisation ? 1 : 0
}

/** The level from which a class is refused. Stopping never is: people must be able to stop the cause of an overload. */
const SHED_FROM: Record<Priority, number> = {
  exempt: Number.POSITIVE_INFINITY,
  stop: Number.POSITIVE_INFINITY,
  enter: 3,
  decide: 3,
  write: 2,
  read: 2,
  batch: 1,
}
const isShed = (priority: Priority, level: Level): boolean => level >= SHED_FROM[priority]

export type Pressure = {
  enter: () => void
  leave: () => void
  /** Whether a request of this class is refused now. */
  sheds: (priority: Priority) => boolean
}

/** One per process of an app, even if it has two listeners. */
const pressures = new WeakMap<Telemetry, Pressure>()

/**
 * Sheds load before bodies are read (platform.md 7.1), the lowest classes first. Deciding goes before reading, and so
 * does signing in, because people must sign in to stop. Counts requests in flight and refusals.
 */
export const createPressure = (
  telemetry: Telemetry,
  bounds: Bounds,
  strain: () => Strain = strainOfProcess(),
): Pressure => {
  const known = pressures.get(telemetry)
  if (known) return known
  const shed = telemetry.counter('signalbox_http_shed_total', 'Requests refused under load.', ['class', 'reason'])
  let in_flight = 0
  telemetry.reading('signalbox_http_in_flight', 'Requests in flight.', () => in_flight)
  const pressure: Pressure = {
    enter: () => {
      in_flight += 1
    },
    leave: () => {
      in_flight -= 1
    },
    sheds: (priority) => {
      const refused = isShed(priority, levelOf(in_flight, strain(), bounds))
      if (refused) shed.inc({ class: priority, reason: 'overload' })
      return refused
    },
  }
  pressures.set(telemetry, pressure)
  return pressure
}

/** Refuses deferrable requests while this app is overloaded, before the body is read, by the kind of the route. */
export const shedLoad = (target: FastifyInstance, telemetry: Telemetry, codes: EdgeCodes) => {
  const pressure = createPressure(telemetry, loadBounds())
  target.addHook('onRequest', (req, reply, done) => {
    const { authorization, endless, waits } = req.routeOptions.config
    if (!authorization) return done()
    if (!endless && !waits) {
      pressure.enter()
      reply.raw.once('close', pressure.leave)
    }
    const priority = priorityOf(req.headers[PRIORITY_HEADER], authorization.kind)
    done(pressure.sheds(priority) ? overloaded(codes.outage) : undefined)
  })
}
