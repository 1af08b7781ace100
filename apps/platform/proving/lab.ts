import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Door } from './doors.ts'
import type { Ground, Job } from './ground.ts'
import { type Attempt, effectsOf, endOf, startedOf } from './rules.ts'

export type Jobs = { effect: Job; ticks: Job; loud: Job }

/** An agent violated a rule; the message is a sentence without a subject. */
export class Broken extends Error {}

const isThere = () => true
const isAway = () => false
const UP_MS = 60_000
/** How long work waits for its "started". */
const TAKEN_MS = 60_000
const ENDED_MS = 30_000
const KEPT = 2000

/** The agent under test as a process, with functions that give it work and observe it. */
export const openLab = (ground: Ground, door: Door, jobs: Jobs, command: string) => {
  let child: ChildProcess | undefined
  let said = ''
  const lastLine = () => said.trim().split('\n').at(-1)?.slice(0, 300) ?? ''

  const spawnIt = () => {
    const env = { ...process.env, SIGNALBOX_POOL: ground.pool, ...door.env }
    child = spawn('/bin/sh', ['-c', `exec ${command}`], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const keep = (chunk: Buffer) => {
      said = (said + chunk).slice(-KEPT)
    }
    child.stdout?.on('data', keep)
    child.stderr?.on('data', keep)
  }
  /** Starts the agent; an agent that listens takes work only once it is up. */
  const start = async () => {
    spawnIt()
    const url = door.env.SIGNALBOX_ENDPOINT
    if (url === undefined) return
    const listens = () => fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(1000) }).then(isThere, isAway)
    for (const end = Date.now() + UP_MS; !hasExited() && Date.now() < end && !(await listens()); ) await delay(100)
  }
  const hasExited = () => child !== undefined && (child.exitCode !== null || child.signalCode !== null)

  /** Waits for a state of the agent; after the timeout, throws that it broke `otherwise`. */
  const until = async <T>(probe: () => T, ms: number, otherwise: string): Promise<NonNullable<T>> => {
    for (const end = Date.now() + ms; ; await delay(25)) {
      const value = probe()
      if (value) return value
      if (hasExited()) throw new Broken(`exited with ${child?.exitCode ?? child?.signalCode}: ${lastLine()}`)
      if (Date.now() > end) throw new Broken(otherwise)
    }
  }

  const give = (work: Attempt['work']) =>
    door.give(work).catch((error: Error) => {
      throw new Broken(`did not accept the work: ${error.message}`)
    })

  return {
    ...{ ground, door, jobs, until, give, start, hasExited },
    /** Makes an attempt and gives it to the agent. */
    hand: async (
      name: string,
      job: Job,
      { answer, ...times }: { heartbeat_s?: number; run_s?: number; answer?: Attempt['answer'] } = {},
    ): Promise<Attempt> => {
      const attempt = ground.attempt(name, job, times)
      if (answer) attempt.answer = answer
      await give(attempt.work)
      return attempt
    },
    begun: (attempt: Attempt) =>
      until(
        () => startedOf(attempt),
        TAKEN_MS,
        `did not report "started" within ${TAKEN_MS / 1000} s of receiving the work`,
      ),
    ticking: (attempt: Attempt) =>
      until(() => effectsOf(attempt).length > 0, TAKEN_MS, 'did not begin the job "ticks": its file has no line $FILE'),
    ended: (attempt: Attempt, ms = ENDED_MS, otherwise = `did not report an end within ${ms / 1000} s`) =>
      until(() => endOf(attempt), ms, otherwise),
    /** Waits until the work of an attempt is at rest: its file does not grow for longer than one tick. */
    rests: async (attempt: Attempt, ms: number, otherwise: string) => {
      const end = Date.now() + ms
      for (let before = -1; ; ) {
        const now = effectsOf(attempt).length
        if (now === before) return
        if (Date.now() > end) throw new Broken(otherwise)
        before = now
        await delay(2200)
      }
    },
    signal: (name: 'SIGTERM' | 'SIGKILL') => child?.kill(name),
    /** The exit code within this time; `undefined` if the agent still runs. */
    exit: async (ms: number): Promise<number | null | undefined> => {
      if (!child) return undefined
      if (!hasExited()) await Promise.race([once(child, 'exit'), delay(ms)])
      return hasExited() ? child.exitCode : undefined
    },
    stop: async () => {
      if (child && !hasExited()) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      child = undefined
    },
  }
}
export type Lab = ReturnType<typeof openLab>
