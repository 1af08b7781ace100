import { expect, it } from 'vitest'
import type { Act, Books, OperationBook, Vote } from './books.ts'
import { type Effect, judge, type Start } from './judge.ts'

/** The judge itself: each thing that must never happen is put into books by hand, and the judge must name it. */
const T = Date.parse('2026-01-01T12:00:00Z')
const act = (from: number, to = from + 10, outcome: Act['outcome'] = 'done'): Act => ({
  from: T + from,
  to: T + to,
  outcome,
})
const approval = (voter: string, at: number, reads = 'v1'): Vote => ({
  ...act(at),
  voter,
  decision: 'approve',
  paper: new Map([['a', reads]]),
})
const person = (name: string, group = 'netops') => {
  const part = () => ({ lost: [] as Act[], given: [] as (Act & { by?: string })[] })
  return { name, group, parts: { account: part(), role: part(), group: part() } }
}

/** Started at 60 s behind a gate of two votes, at 10 s and 20 s; everything in order. */
const inOrder = () => {
  const operation: OperationBook = {
    operation_id: 'op',
    involved: ['olaf'],
    planned: act(0),
    started: act(1000),
    nodes: new Map([['a', { node_id: 'a', host: 'h', stated: [{ does: 'v1', act: act(0) }] }]]),
    gates: new Map([
      [
        'g',
        {
          gate_id: 'g',
          quorum: 2,
          group: 'netops',
          guards: ['a'],
          cone: new Set(['a']),
          votes: [approval('eva', 10_000), approval('ada', 20_000)],
        },
      ],
    ]),
    patches: [],
    pauses: [],
    resumes: [],
    cancels: [],
    seen_paused: [],
    seen_ended: null,
    status: 'running',
    told: [],
  }
  const people = new Map(['eva', 'ada', 'olaf'].map((name) => [name, person(name)]))
  people.set('ivo', person('ivo', 'storage'))
  const books: Books = { people, operations: new Map([['op', operation]]), values: new Map(), freezes: [], kills: [] }
  const start: Start = { operation_id: 'op', node_id: 'a', role: 'run', attempt: 1, started_at: T + 60_000, grants: 1 }
  const effect: Effect = {
    at: new Date(T + 60_100).toISOString(),
    hostname: 'h',
    operation_id: 'op',
    node_id: 'a',
    attempt: '1',
    key: 'op:a:1',
    effect: 'deploy',
    detail: 'v1',
  }
  const gate = operation.gates.get('g')
  if (!gate) throw new Error('no gate')
  return { books, operation, gate, start, effect, starts: [start], ledger: [effect] }
}
type Case = ReturnType<typeof inOrder>
const lose = ({ books }: Case, name: string, lost: Act, given: Act[] = []) =>
  books.people.get(name)?.parts.role.lost.push(lost) && books.people.get(name)?.parts.role.given.push(...given)

const CASES: [string, (c: Case) => unknown, RegExp | undefined][] = [
  ['all is in order', () => {}, undefined],
  [
    'a voter lost the right 6 s before',
    (c) => lose(c, 'ada', act(53_900)),
    /1 of 2 approvals \(ada had lost the right\)/,
  ],
  ['a voter lost it 4 s before', (c) => lose(c, 'ada', act(56_000)), undefined],
  ['a voter lost it, and has it again', (c) => lose(c, 'ada', act(30_000), [act(40_000)]), undefined],
  [
    'nobody knows whether it was given back',
    (c) => lose(c, 'ada', act(30_000), [act(40_000, 1e9, 'unknown')]),
    undefined,
  ],
  ['one vote is missing', (c) => c.gate.votes.pop(), /1 of 2 approvals/],
  ['one voted twice', (c) => c.gate.votes.splice(1, 1, approval('eva', 20_000)), /1 of 2 approvals/],
  ['a vote came later', (c) => c.gate.votes.splice(1, 1, approval('ada', 61_000)), /ada came later/],
  ['the starter voted', (c) => c.gate.votes.splice(1, 1, approval('olaf', 20_000)), /olaf takes part/],
  [
    'a voter had stated an action before',
    (c) => c.operation.nodes.get('a')?.stated?.push({ does: 'v2', act: act(5_000), by: 'eva' }),
    /took the vote of eva .*, who had stated v2/,
  ],
  ['a voter is of another group', (c) => c.gate.votes.splice(1, 1, approval('ivo', 20_000)), /ivo is not of netops/],
  [
    'a voter had read something else',
    (c) => c.gate.votes.splice(1, 1, approval('ada', 20_000, 'v0')),
    /ada had read v0/,
  ],
  ['a vote was refused', (c) => Object.assign(c.gate.votes[1] ?? {}, { outcome: 'refused' }), /ada was refused/],
  [
    'someone rejected afterwards',
    (c) => c.gate.votes.push({ ...approval('eva', 30_000), decision: 'reject' }),
    /0 of 2 approvals \(eva was overruled or withdrawn, ada was overruled/,
  ],
  [
    'what was done was never stated',
    (c) => Object.assign(c.effect, { detail: 'v2' }),
    /did v2, which nobody had stated/,
  ],
  ['another host was changed', (c) => Object.assign(c.effect, { hostname: 'i' }), /acted on i, not on h/],
  ['it was paused', (c) => c.operation.pauses.push(act(50_000)), /after an acknowledged pause/],
  ['the pause was not yet acknowledged', (c) => c.operation.pauses.push(act(50_000, 70_000)), undefined],
  ['it went on', (c) => c.operation.pauses.push(act(50_000)) && c.operation.resumes.push(act(55_000)), undefined],
  [
    'it was cancelled',
    (c) => c.operation.cancels.push({ ...act(50_000), mode: 'graceful' }),
    /after an acknowledged cancel/,
  ],
  [
    'its host was frozen',
    (c) => c.books.freezes.push({ id: 'f', host: 'h', put: act(50_000), withdrawn: [] }),
    /under a freeze/,
  ],
  ['no start is known', (c) => c.starts.pop(), /had an effect and never started/],
  ['it had two effects', (c) => c.ledger.push(c.effect), /had 2 effects/],
  [
    'it stirred while it stood still',
    (c) => c.operation.seen_paused.push({ from: T + 59_000, to: T + 59_100 }),
    /seen to be paused/,
  ],
  ['it stirred after its end', (c) => Object.assign(c.operation, { seen_ended: T + 59_000 }), /after its end/],
  [
    'the catalog had moved on',
    (c) => {
      Object.assign(c.operation.nodes.get('a') ?? {}, { stated: null })
      c.books.values.set('h', [
        { value: 'v1', act: act(0) },
        { value: 'v2', act: act(50_000) },
      ])
    },
    /the catalog said otherwise of h: v2/,
  ],
  [
    'other inputs were refused',
    (c) => {
      c.operation.nodes.get('a')?.stated?.push({ does: 'v2', act: act(59_000, 70_000, 'refused') })
      Object.assign(c.effect, { detail: 'v2' })
    },
    /did v2, which nobody had stated/,
  ],
  [
    'a vote on paper that was outdated',
    (c) => c.operation.nodes.get('a')?.stated?.push({ does: 'v2', act: act(15_000) }),
    /took the vote of ada at .*, who had read v1 when v2 was stated/,
  ],
  [
    'the catalog moved between plan and start',
    (c) => {
      Object.assign(c.operation.nodes.get('a') ?? {}, { stated: null })
      c.books.values.set('h', [
        { value: 'v0', act: act(0) },
        { value: 'v1', act: act(500) },
      ])
    },
    /was started although the catalog said v1 of h/,
  ],
  [
    'a vote opened the gate when an earlier voter had lost the right',
    (c) => lose(c, 'eva', act(15_000), [act(30_000)]) && Object.assign(c.gate.votes[1] ?? {}, { opened: true }),
    /ada .*opened it with 1 of 2 votes/,
  ],
  [
    'a voter has the right of the starter',
    (c) => lose(c, 'ada', act(5000), [{ ...act(6000), by: 'olaf' } as Act]),
    /the vote of ada at .*, who had the right of a participant/,
  ],
  [
    'a voter has the right of someone else',
    (c) => lose(c, 'ada', act(5000), [{ ...act(6000), by: 'zoe' } as Act]),
    undefined,
  ],
  [
    'a voter for a patch lost the right before it began',
    (c) => {
      lose(c, 'ada', act(30_000))
      c.operation.patches.push({
        patch_id: 'p',
        proposer: 'olaf',
        node_id: 'a',
        does: 'v1',
        proposed: act(0),
        votes: [approval('ada', 5000)],
      })
    },
    /by a patch with 0 of 1 approvals/,
  ],
  [
    'a patch that its proposer approved',
    (c) =>
      c.operation.patches.push({
        patch_id: 'p',
        proposer: 'eva',
        node_id: 'a',
        does: 'v1',
        proposed: act(0),
        votes: [approval('eva', 5000)],
      }),
    /by a patch with 0 of 1 approvals/,
  ],
]

it.each(CASES)('judges: %s', (_what, change, expected) => {
  const c = inOrder()
  change(c)
  const found = judge(c.books, c.starts, c.ledger).map(({ what }) => what)
  if (expected) expect(found.join('\n')).toMatch(expected)
  else expect(found).toEqual([])
})
