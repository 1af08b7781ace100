import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Door } from './doors.ts'
import { Broken, type Lab } from './lab.ts'
import { type Answer, type Attempt, effectsOf, endOf, startedOf, TERMINAL } from './rules.ts'

/** One guarantee of the protocol (operations.md 7.4). `prove` throws the violation. */
export type Check = {
  id: string
  /** The behavior of a good agent. */
  says: string
  /** The check stops or restarts the agent, so no other check runs beside it. */
  alone?: boolean
  via?: readonly Door['via'][]
  prove: (lab: Lab, note: (attempt: Attempt) => Attempt) => Promise<void>
}

const succeeded = (attempt: Attempt) => {
  const end = endOf(attempt)
  if (end?.phase !== 'succeeded')
    throw new Broken(`ended its job as ${end?.phase}: ${end?.error?.class} ${end?.error?.message}`)
}
const onceOnly = (attempt: Attempt, how: string) => {
  const { length } = effectsOf(attempt)
  if (length !== 1) throw new Broken(`${how} had ${length} effects instead of one`)
}
/** Loses the first answer to each message except heartbeats, and answers its repeat as usual. */
const loses: Attempt['answer'] = ({ message, repeat }) =>
  repeat || message.phase === 'heartbeat' ? 'as usual' : 'lost'

/** Long work whose answers change after its first effect. */
const changed = async (lab: Lab, name: string, later: 'cancel' | 'closed' | 'away', heartbeat_s: number) => {
  let now: 'as usual' | typeof later = 'as usual'
  const attempt = await lab.hand(name, lab.jobs.ticks, { heartbeat_s, answer: () => now })
  await lab.ticking(attempt)
  now = later
  return attempt
}

export const CHECKS: readonly Check[] = [
  {
    id: 'claim',
    says: 'begins only after its "started" was accepted',
    prove: async (lab, note) => {
      let early = 0
      const answer: Attempt['answer'] = async ({ message }): Promise<Answer> => {
        if (message.phase !== 'started') return 'as usual'
        await delay(1500)
        early = effectsOf(attempt).length
        return 'as usual'
      }
      const attempt: Attempt = note(await lab.hand('claim', lab.jobs.effect, { answer: (heard) => answer(heard) }))
      await lab.ended(attempt)
      if (early > 0) throw new Broken('began the job before its "started" was accepted')
      succeeded(attempt)
      onceOnly(attempt, 'the work')
    },
  },
  {
    id: 'refused',
    says: 'does no work when its "started" is refused',
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('refused', lab.jobs.effect, { answer: () => 'closed' }))
      await lab.begun(attempt)
      await delay(3000)
      if (effectsOf(attempt).length > 0) throw new Broken('did the work though its "started" was refused')
    },
  },
  {
    id: 'lost-answers',
    says: 'repeats a message whose answer was lost, unchanged, and acts once',
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('lost', lab.jobs.effect, { answer: loses }))
      await lab.ended(attempt)
      const lastWords = () => attempt.heard.filter(({ message }) => TERMINAL.has(message.phase))
      await lab.until(() => lastWords().length > 1, 15_000, 'did not repeat its last word when the answer was lost')
      const ids = new Set(attempt.heard.flatMap(({ message: m }) => (m.phase === 'started' ? m.result_id : [])))
      if (ids.size > 1) throw new Broken('repeated its "started" under another result_id, as a new message')
      onceOnly(attempt, 'work whose answers were lost')
    },
  },
  {
    id: 'replay',
    says: 'does work once that it is given twice',
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('replay', lab.jobs.effect))
      await lab.begun(attempt)
      await lab.give(attempt.work)
      await lab.ended(attempt)
      attempt.closed = true
      await lab.give(attempt.work)
      await delay(4000)
      onceOnly(attempt, 'work that was given three times')
    },
  },
  {
    id: 'unknown-job',
    says: 'fails, definitely, a job that it does not know',
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('unknown', { job: `no-such-job-${randomUUID().slice(0, 8)}`, inputs: {} }))
      const end = await lab.ended(attempt)
      if (end.phase !== 'failed' || !end.error) throw new Broken(`ended an unknown job as ${end.phase}`)
    },
  },
  {
    id: 'heartbeat',
    says: 'is never silent for three heartbeats while it works',
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('heartbeat', lab.jobs.ticks, { heartbeat_s: 2 }))
      await lab.begun(attempt)
      await delay(8000)
      const times = [...attempt.heard.map(({ at }) => at), Date.now()]
      const longest = Math.max(...times.slice(1).map((at, i) => at - (times[i] ?? at)))
      if (endOf(attempt)) throw new Broken('ended the job "ticks" by itself; it is to run until it is stopped')
      if (longest > 6000) throw new Broken(`was silent for ${Math.round(longest / 1000)} s with a heartbeat of 2 s`)
      attempt.answer = () => 'cancel'
      await lab.ended(attempt)
    },
  },
  {
    id: 'logs',
    says: 'brings a long log in messages that fit, its lines numbered densely',
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('logs', lab.jobs.loud))
      await lab.ended(attempt, 60_000)
      succeeded(attempt)
      const last = Math.max(0, ...attempt.lines.keys())
      if (attempt.lines.size !== last)
        throw new Broken(`sent ${attempt.lines.size} log lines, but numbered the last one ${last}`)
      if (last < 3000) throw new Broken(`sent ${last} of 3,000 log lines`)
    },
  },
  {
    id: 'cancel',
    says: 'stops when an answer says cancel_requested, and says how it ended',
    prove: async (lab, note) => {
      const attempt = note(await changed(lab, 'cancel', 'cancel', 2))
      const end = await lab.ended(attempt, 15_000, 'did not stop within 15 s of cancel_requested')
      if (end.phase === 'succeeded') throw new Broken('called work succeeded that was cancelled')
      await lab.rests(attempt, 5000, 'works on after it said how the cancelled work ended')
    },
  },
  {
    id: 'cancel-pushed',
    says: 'stops when it is told to at the door that work comes by',
    via: ['push', 'nats'],
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('pushed', lab.jobs.ticks, { heartbeat_s: 60 }))
      await lab.ticking(attempt)
      await lab.door.stop?.(attempt.work)
      await lab.ended(attempt, 10_000, 'did not stop within 10 s of the message that told it to')
    },
  },
  {
    id: 'closed',
    says: 'stops when a report is refused: the attempt is no longer its own',
    prove: async (lab, note) => {
      const attempt = note(await changed(lab, 'closed', 'closed', 2))
      await lab.until(() => attempt.closed, 10_000, 'sent no heartbeat within 10 s at a heartbeat of 2 s')
      await lab.rests(attempt, 8000, 'works on though its report was refused as attempt_closed')
    },
  },
  {
    id: 'silence',
    says: 'stops before three heartbeats are over without an answer, so a repeat meets nobody',
    prove: async (lab, note) => {
      const attempt = note(await changed(lab, 'silence', 'away', 4))
      await delay(12_500)
      await lab.rests(attempt, 2500, 'works on, three heartbeats after the last answer: a repeat would meet it')
    },
  },
  {
    id: 'deadline',
    says: 'ends its work before deadline_at, and says so',
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('deadline', lab.jobs.ticks, { run_s: 12 }))
      await lab.ticking(attempt)
      const left = Date.parse(attempt.work.deadline_at) - Date.now()
      const end = await lab.ended(attempt, Math.max(left, 0), 'worked on beyond deadline_at')
      if (end.phase === 'succeeded') throw new Broken('called work succeeded that ran out of time')
    },
  },
  {
    id: 'drain',
    says: 'ends its work on SIGTERM, takes no more and exits with 0',
    alone: true,
    prove: async (lab, note) => {
      const answer: Attempt['answer'] = async ({ message, repeat }): Promise<Answer> => {
        if (message.phase === 'started' && !repeat) {
          lab.signal('SIGTERM')
          await delay(1000)
        }
        return 'as usual'
      }
      const attempt = note(await lab.hand('drain', lab.jobs.effect, { answer }))
      await lab.begun(attempt)
      lab.ground.hush()
      const later = lab.ground.attempt('later', lab.jobs.effect)
      await lab.give(later.work).catch(() => {})
      const code = await lab.exit(30_000)
      if (code === undefined) throw new Broken('still runs, 30 s after SIGTERM')
      succeeded(attempt)
      onceOnly(attempt, 'work that was in flight at SIGTERM')
      if (startedOf(later)) throw new Broken('began work after SIGTERM')
      if (code !== 0) throw new Broken(`exited with code ${code} after SIGTERM`)
    },
  },
  {
    id: 'killed',
    says: 'neither resumes nor repeats work after a kill: its outcome is unknown',
    alone: true,
    prove: async (lab, note) => {
      const attempt = note(await lab.hand('killed', lab.jobs.ticks, { heartbeat_s: 2 }))
      await lab.ticking(attempt)
      lab.signal('SIGKILL')
      await lab.exit(5000)
      await lab.rests(attempt, 8000, 'left its tool running when it was killed')
      const [messages, effects] = [attempt.heard.length, effectsOf(attempt).length]
      await lab.start()
      await lab.ended(note(await lab.hand('after', lab.jobs.effect)))
      await delay(2000)
      if (attempt.heard.length > messages) throw new Broken('spoke of work that an agent before it had lost')
      if (effectsOf(attempt).length > effects) throw new Broken('repeated work that an agent before it had lost')
    },
  },
  {
    id: 'identity',
    says: 'exits, not with 0, when its name or its pool is refused',
    alone: true,
    via: ['pull'],
    prove: async (lab) => {
      lab.ground.state.refuses = true
      const asked = lab.ground.state.asked
      try {
        for (const end = Date.now() + 20_000; lab.ground.state.asked === asked && Date.now() < end; ) await delay(50)
        const code = await lab.exit(15_000)
        if (code === undefined) throw new Broken('keeps asking though it is refused as not_an_agent')
        if (code === 0) throw new Broken('exited with 0 though it was refused as not_an_agent')
      } finally {
        lab.ground.state.refuses = false
      }
    },
  },
]
