import { expect, it } from 'vitest'
import { refusalOf } from '../../workflows/operation/refuse.ts'
import type { GraphPage, Profile, RunEffect } from '../../workflows/operation/state/events.ts'
import {
  brokenInvariant,
  type Event,
  outcome,
  restore,
  type State,
  snapshot,
  start,
  step,
} from '../../workflows/operation/state.ts'
import { type Task, World } from './support/world.ts'

const profile: Profile = {
  kind: 'task',
  executor: 'noop',
  join: 'all',
  on_failure: 'hold',
  retry: { max_attempts: 1, initial_s: 1, factor: 2, max_s: 10 },
  slice_s: 10,
  when: false,
  catalog: false,
  undo: true,
  max_failures: null,
  wait: null,
}
type Node = Partial<Profile> & { deps?: readonly number[] }

/** An operation on the rows of a `World`, whose messages each test delivers in its own order. */
class Course {
  readonly world: World
  readonly state: State

  constructor(nodes: Node[], head: Partial<NonNullable<GraphPage['head']>> = {}) {
    this.world = new World([
      {
        plan_revision: 1,
        profiles: nodes.map(({ deps: _, ...more }) => ({ ...profile, ...more })),
        nodes: nodes.map(({ deps = [] }, i) => [`n${i}`, `Node ${i}`, i, [...deps], []]),
        next: null,
        head: {
          gates: [],
          max_parallel: 10,
          deadline_at: null,
          on_deadline: 'graceful',
          not_before: null,
          pause_on_failure: false,
          failure_budget: null,
          force_grace_s: 30,
          ...head,
        },
      },
    ])
    this.state = start('op', this.world.pages, this.world.command('start', {}), this.world.now)
    this.take({ type: 'due', at: this.world.now })
    this.records()
  }

  take(...events: Event[]) {
    const { effects } = step(this.state, ...events)
    expect(brokenInvariant(this.state, effects)).toBeUndefined()
    this.world.accept(effects)
  }

  tasks<K extends Task['kind']>(kind: K) {
    const found = this.world.tasks.filter((task): task is Extract<Task, { kind: K }> => task.kind === kind)
    this.world.tasks = this.world.tasks.filter((task) => task.kind !== kind)
    return found
  }

  /** Writes the next batch; its answer is on its way. */
  commit(): Event {
    const [task] = this.tasks('record')
    if (!task) throw new Error('no batch is to be recorded')
    return { type: 'recorded', at: this.world.now, result: this.world.record(task.batch) }
  }

  /** Records all that is to be recorded, each answer at once. */
  records() {
    while (this.world.tasks.some(({ kind }) => kind === 'record')) this.take(this.commit())
  }

  /** Delivers every command that was sent. */
  deliver() {
    for (const command of this.world.signals.splice(0)) this.take({ type: 'command', at: this.world.now, command })
  }

  /** Claims every attempt that was dispatched, and returns them. */
  begin(): RunEffect[] {
    return this.tasks('run').map(({ effect }) => {
      expect(this.world.claim(effect)).toBeUndefined()
      return effect
    })
  }

  end(effect: RunEffect, status: 'succeeded' | 'failed', retryable = false) {
    const at = this.world.now
    const error = { class: 'remote_error', message: 'no', retryable }
    const result = { status, started_at: at, ended_at: at, error }
    this.take({ ...effect, type: 'attempt_ended', at, result: this.world.result(effect, result) })
  }

  /** Runs everything that begins, until all have succeeded and are recorded. */
  run() {
    for (let begun = this.begin(); begun.length > 0; begun = this.begin()) {
      for (const effect of begun) this.end(effect, 'succeeded')
      this.records()
    }
  }

  pause() {
    this.world.control = 'pause'
    this.world.send('pause', {})
  }

  controls = () => [this.state.control, this.world.control]
}

const [first, second] = [{}, { deps: [0] }]
const named = (effects: readonly RunEffect[]) => effects.map(({ node_id }) => node_id)

/** A pause over the failure of the first node is in the rows; the engine does not know yet. */
const pausing = () => {
  const course = new Course([first, {}, { deps: [1] }], { pause_on_failure: true })
  const [failing, other] = course.begin()
  if (!failing || !other) throw new Error('two nodes begin')
  course.end(failing, 'failed')
  const answer = course.commit()
  expect(course.controls()).toEqual(['run', 'pause'])
  return { course, answer, other }
}

it('counts an extension once that the first graph had already, and lets no limit exceed the worker’s', () => {
  const deadline = Date.parse('2100-01-01T00:00:00Z')
  const head = { deadline_at: new Date(deadline).toISOString(), command_seq: 2, most_parallel: 3 }
  const course = new Course([first], head)
  const more = (type: 'extend_deadline' | 'set_limits', payload: object) => {
    course.world.send('intervene', { type, node_id: null, payload })
    course.deliver()
  }
  more('extend_deadline', { add_s: 60 })
  expect([course.state.last_seq, course.state.deadline]).toEqual([2, deadline])
  more('extend_deadline', { add_s: 60 })
  expect(course.state.deadline).toBe(deadline + 60_000)
  more('set_limits', { max_parallel: 500 })
  expect(course.state.max_parallel).toBe(3)
})

it('ends a pause of its own by a resume that arrives before the answer', () => {
  const { course, answer, other } = pausing()
  course.world.resume(false)
  course.deliver()
  course.take(answer)
  expect(course.controls()).toEqual(['run', 'run'])
  course.end(other, 'succeeded')
  expect(named(course.begin())).toEqual(['n2'])
})

it('stays paused if the resume before the answer is followed by a pause, or came too late', () => {
  for (const late of [false, true]) {
    const { course, answer } = pausing()
    course.world.resume(late)
    if (!late) course.pause()
    course.deliver()
    course.take(answer)
    course.records()
    expect(course.controls()).toEqual(['pause', 'pause'])
  }
})

it('does not end a pause of its own by a resume that was given before it', () => {
  const course = new Course([first, {}, { deps: [1] }], { pause_on_failure: true })
  const [failing] = course.begin()
  if (!failing) throw new Error('no node has begun')
  course.pause()
  course.world.resume(false)
  course.end(failing, 'failed')
  course.records()
  course.deliver()
  expect(course.controls()).toEqual(['pause', 'pause'])
  expect(course.state.pause_reason).toBe('failed_node')
  course.world.resume(false)
  course.deliver()
  expect(course.controls()).toEqual(['run', 'run'])
})

it('asks the condition of a node again once a node before it is retried: an answer about its earlier end does not count', () => {
  for (const again of [false, true]) {
    const course = new Course([first, { deps: [0], when: true }])
    const { world, state } = course
    const [begun] = course.begin()
    if (!begun) throw new Error('no node has begun')
    course.end(begun, 'succeeded')
    const answer = course.commit()
    world.generations[0] = 2
    world.send('retry_node', { node_id: 'n0', scope: 'node', generations: { n0: 2 }, gates: {} })
    course.deliver()
    const [anew] = course.begin()
    if (!anew) throw new Error('the node has not begun again')
    if (again) course.end(anew, 'succeeded')
    course.take(answer)
    expect([state.nodes[1]?.state, named(course.begin())]).toEqual(['pending', []])
    if (!again) course.end(anew, 'succeeded')
    course.records()
    expect(named(course.begin())).toEqual(['n1'])
  }
})

it('makes its pause after the one of a person who was faster, unless the failure is dealt with', () => {
  for (const dealtWith of [false, true]) {
    const course = new Course([first, {}], { pause_on_failure: true })
    const [failing] = course.begin()
    if (!failing) throw new Error('no node has begun')
    course.pause()
    course.end(failing, 'failed')
    course.records()
    course.deliver()
    course.records()
    if (dealtWith) course.world.intervene('skip', 0, 0)
    course.world.resume(false)
    course.deliver()
    course.records()
    expect(course.state.control).toBe(dealtWith ? 'run' : 'pause')
  }
})

it('ends for its own reason if a person escalates its cancel before the answer', () => {
  const course = new Course([{ on_failure: 'fail' }])
  const [failing] = course.begin()
  if (!failing) throw new Error('no node has begun')
  course.end(failing, 'failed')
  const answer = course.commit()
  course.world.cancelRows('compensate', 'cancelled')
  course.world.send('cancel', { mode: 'compensate' })
  course.deliver()
  course.take(answer)
  course.records()
  expect([course.state.mode, outcome(course.state)]).toMatchObject([
    'compensate',
    { status: 'failed', end_reason: 'node_failed' },
  ])
})

it('takes a cancel made in the engine while its own waits for the end of a pause', () => {
  const course = new Course([{ on_failure: 'fail' }, {}])
  const [failing] = course.begin()
  if (!failing) throw new Error('no node has begun')
  course.pause()
  course.deliver()
  course.end(failing, 'failed')
  course.take({ type: 'cancel_requested', at: course.world.now, by: 'temporal' })
  course.records()
  expect([course.controls(), course.state.ending?.reason]).toEqual([['cancel', 'cancel'], 'cancelled_in_engine'])
})

it('undoes a node only after all that came after it, even if a person has undone one in between', () => {
  for (const ends of ['succeeded', 'failed'] as const) {
    const waits = { kind: 'wait', wait: { signal: 'never' } } as const
    const course = new Course([first, second, { deps: [1] }, { deps: [0] }, waits])
    const { world } = course
    course.run()
    course.pause()
    course.deliver()
    course.records()
    world.intervene('trigger_compensation', 1, 0)
    course.deliver()
    const [undo] = course.begin()
    if (undo?.node_id !== 'n1') throw new Error('the undo has not begun')
    world.cancelRows('compensate', 'cancelled')
    world.send('cancel', { mode: 'compensate' })
    course.deliver()
    course.end(undo, ends)
    if (ends === 'failed') {
      course.records()
      world.intervene('mark_compensated', 1, 0)
      course.deliver()
    }
    const later = course.begin()
    expect(named(later).sort()).toEqual(['n2', 'n3'])
    for (const effect of later) {
      course.end(effect, 'succeeded')
      course.records()
      expect(named(course.tasks('run').map(({ effect: next }) => next))).toEqual(effect === later.at(-1) ? ['n0'] : [])
    }
  }
})

it('bars what comes after an undone node, even if a barrier in between was passed while the undo was on its way', () => {
  const course = new Course([first, { kind: 'barrier', deps: [0] }, { deps: [1] }, { deps: [2] }])
  const { world } = course
  const [begun] = course.begin()
  if (!begun) throw new Error('no node has begun')
  course.end(begun, 'succeeded')
  // The rows do not know of the barrier yet, and the claim of the node behind it is on its way.
  const [late] = course.tasks('run')
  if (late?.effect.node_id !== 'n2') throw new Error('the node behind the barrier is not dispatched')
  world.intervene('trigger_compensation', 0, 0)
  const refusal = world.claim(late.effect)
  expect(refusal?.reason).toBe('superseded')
  if (refusal)
    course.take({ ...late.effect, type: 'attempt_ended', at: world.now, result: { status: 'refused', refusal } })
  course.deliver()
  course.run()
  course.records()
  expect(course.state.nodes.map(({ state }) => state)).toEqual(['compensated', 'skipped', 'skipped', 'skipped'])
})

it('runs a skipped node that a person retries once the rest before it has ended, though one of them failed', () => {
  const course = new Course([{ on_failure: 'skip_dependents' }, {}, { deps: [0, 1] }])
  const { world } = course
  const [failing, open] = course.begin()
  if (!failing || !open) throw new Error('two nodes begin')
  course.end(failing, 'failed')
  course.records()
  expect(world.states[2]).toBe('skipped')
  world.generations[2] = 2
  world.send('retry_node', { node_id: 'n2', scope: 'downstream', generations: { n2: 2 }, gates: {} })
  course.deliver()
  course.records()
  const carried = restore(
    JSON.parse(JSON.stringify(snapshot({ ...course.state, nodes: course.state.nodes.map(idle) }))),
    world.pages,
    world.now,
  )
  expect(carried.insisted).toEqual([2])
  course.end(open, 'succeeded')
  expect(named(course.begin())).toEqual(['n2'])
  expect(course.state.insisted).toEqual([])
})

it('does not time out by a deadline that was extended before the end of a pause', () => {
  const course = new Course([first, second], { deadline_at: new Date(1_060_000).toISOString() })
  const { world } = course
  const [begun] = course.begin()
  if (!begun) throw new Error('no node has begun')
  // The pause is in the rows, but has not arrived when the time is over.
  course.pause()
  world.now += 61_000
  course.take({ type: 'due', at: world.now })
  course.records()
  course.end(begun, 'succeeded')
  course.deliver()
  world.send('intervene', { type: 'extend_deadline', node_id: null, payload: { add_s: 3600 } })
  course.deliver()
  course.records()
  world.resume(false)
  course.deliver()
  course.records()
  expect(course.controls()).toEqual(['run', 'run'])
  expect(named(course.begin())).toEqual(['n1'])
})

it('counts failures during a pause against the budget: it pauses again before the next node starts', () => {
  const skip = { on_failure: 'skip_dependents' } as const
  const barrier = { kind: 'barrier', join: 'settled', max_failures: 3, deps: [0, 1, 2] } as const
  const paused = () => {
    const course = new Course([skip, skip, skip, barrier, { deps: [3] }], { failure_budget: 1 })
    const begun = course.begin()
    course.pause()
    course.deliver()
    for (const effect of begun) course.end(effect, 'failed')
    course.records()
    return course
  }
  const course = paused()
  course.world.resume(false)
  course.deliver()
  course.records()
  expect([course.state.pause_reason, course.controls()]).toEqual(['failure_budget', ['pause', 'pause']])
  course.world.resume(false)
  course.deliver()
  expect(named(course.begin())).toEqual(['n4'])
  const dealtWith = paused()
  for (const i of [0, 1]) dealtWith.world.intervene('skip', i, 0)
  dealtWith.world.resume(false)
  dealtWith.deliver()
  expect(named(dealtWith.begin())).toEqual(['n4'])
})

it('answers as the rows do about a wave that was left: a retry is free, while what has begun after it is seen', () => {
  const barrier = { kind: 'barrier', join: 'settled', max_failures: 1, deps: [0] } as const
  const course = new Course([{}, barrier, { deps: [1] }])
  for (const effect of course.begin()) course.end(effect, 'succeeded')
  course.records()
  expect(named(course.begin())).toEqual(['n2'])
  const asking = (asked: Parameters<typeof refusalOf>[1]) => refusalOf(course.state, asked, course.world.now)?.code
  expect(asking({ kind: 'retry', node_id: 'n0' })).toBe(undefined)
  expect(asking({ kind: 'intervene', type: 'set_output', node_id: 'n0' })).toBe('intervention_not_applicable')
})

it('carries thousands of long errors within the limit of a payload, and the first ones as readers see them', () => {
  const course = new Course(Array.from({ length: 5000 }, () => ({})))
  const { state, world } = course
  const message = '\u0001'.repeat(1000)
  for (const node of state.nodes) node.error = { class: 'unreachable', message, retryable: true, hint: message }
  const carried = JSON.parse(JSON.stringify(snapshot({ ...state, nodes: state.nodes.map(idle) })))
  expect(JSON.stringify(carried).length).toBeLessThan(1_500_000)
  const { nodes } = restore(carried, world.pages, world.now)
  expect(nodes[0]?.error).toEqual({ class: 'unreachable', message: message.slice(0, 300), retryable: true })
  expect(nodes[4999]?.error?.class).toBe('unreachable')
})
const idle = (node: State['nodes'][number]) => ({ ...node, state: 'failed', doing: 'idle' }) as const
