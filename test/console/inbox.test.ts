import { describe, expect, it } from 'vitest'
import type { Gate, Patch, Waiting } from '../../apps/console/api/types.ts'
import { sendEach } from '../../apps/console/command/each.ts'
import { type Ballot, type Candidate, candidateOf, changeKey, partOf } from '../../apps/console/inbox/bulk/alike.ts'
import { lineKey, linesOf, placed } from '../../apps/console/inbox/steady.ts'
import { digestOf } from '../../apps/shared/contracts/client/digest.ts'

type Facts = {
  to?: string
  step?: string
  environment?: string
  targets?: string[]
  type_key?: string
  inputs?: object
  unchanged?: boolean
}
const gateOf = async (facts: Facts = {}) => {
  const { to = '2', step = 'deploy', targets = ['web-01'], type_key = 'fleet.host', inputs = {} } = facts
  const subject = {
    changes: (facts.unchanged ? [] : targets).map((resource_id) => ({
      ...{ resource_id, type_key, change: 'update', fields: [{ path: '/release', before: '1', after: to }] },
    })),
    releases: targets.map((target_id) => ({
      name: `${step} ${target_id}`,
      target_id,
      executor: 'http',
      on_failure: 'hold',
      inputs,
    })),
    bound_outputs: [],
  }
  return { status: 'waiting', round: 1, digest: await digestOf(subject), subject } as unknown as Gate
}
const candidate = async (operation_id: string, facts: Facts = {}): Promise<Candidate> => {
  const gate = await gateOf(facts)
  const { digest, round } = gate
  return candidateOf(
    { operation_id, gate_id: 'go', round, digest, environment: facts.environment ?? null } as Ballot,
    gate,
  )
}
const ids = (candidates: readonly Candidate[]) => candidates.map(({ row }) => row.operation_id)

describe('gates are alike', () => {
  it('if they make the same change with the same steps on as many targets, whichever these are', async () => {
    const key = async (facts: Facts) => changeKey(await gateOf(facts))
    expect(await key({ targets: ['web-01', 'web-02'] })).toBe(await key({ targets: ['web-04', 'web-03'] }))
    for (const other of [{ to: '3' }, { step: 'drain' }, { targets: ['web-01', 'web-02'] }, { type_key: 'db.host' }])
      expect(await key(other)).not.toBe(await key({}))
  })

  it('without a change of a resource only if their steps have the same inputs, apart from the target', async () => {
    const key = async (inputs: object, target = 'web-01') =>
      changeKey(await gateOf({ unchanged: true, targets: [target], inputs }))
    expect(await key({ mode: 'keep', host: 'web-01' })).toBe(await key({ mode: 'keep', host: 'web-02' }, 'web-02'))
    expect(await key({ mode: 'keep' })).not.toBe(await key({ mode: 'wipe' }))
    // Only where the id is the whole value, not where a longer word contains it.
    expect(await key({ drain_to: 'web-010' })).not.toBe(await key({ drain_to: 'web-020' }, 'web-02'))
    expect(await key({ mode: 'keep-a' }, 'a')).not.toBe(await key({ mode: 'keep-b' }, 'b'))
    const hosts = (inputs: object) => gateOf({ inputs }).then(changeKey)
    expect(await hosts({ base_url: 'http://a' })).toBe(await hosts({ base_url: 'http://b' }))
  })

  it('in the largest group of one environment; the others are separate, elsewhere or excluded', async () => {
    const one = await candidate('one')
    const moved = await candidateOf({ ...one.row, operation_id: 'moved', round: 2 } as Ballot, one.read)
    const differs = await candidateOf({ ...one.row, operation_id: 'forged' }, {
      ...one.read,
      digest: 'sha256:0',
    } as Gate)
    const others = [await candidate('prod', { environment: 'prod' }), await candidate('three', { to: '3' })]
    const parted = partOf(
      [others[0], one, others[1], await candidate('two'), moved, differs].filter((c) => c !== undefined),
    )
    expect(ids(parted.alike)).toEqual(['one', 'two'])
    expect(ids(parted.apart)).toEqual(['three'])
    expect(ids(parted.elsewhere)).toEqual(['prod'])
    expect(parted.out.map(({ row, out }) => [row.operation_id, out])).toEqual([
      ['moved', 'moved'],
      ['forged', 'differs'],
    ])
  })
})

describe('patches are alike', () => {
  const patch = async (patch_id: string, changes: object[], more: object = {}, asked?: object) => {
    const covered = {
      ...{ patch_id, base_revision: 1, changes, result_hash: 'sha256:1' },
      ...(asked && { v: 2, asked }),
    }
    const read = {
      ...covered,
      status: 'awaiting_approval',
      digest: await digestOf(covered),
      ...more,
    } as unknown as Patch
    return candidateOf({ operation_id: patch_id, patch_id, digest: read.digest, environment: null } as Ballot, read)
  }
  it('if they make the same changes without a gate; a decided or forged one is excluded', async () => {
    const limits = [{ op: 'set_limits', max_parallel: 2 }]
    const asked = { proposer: { kind: 'user', id: 'o', name: 'olga' }, reason: 'slow', ticket: null }
    const bound = await patch('bound', limits, { asked }, asked)
    const retold = await patch('retold', limits, { asked: { ...asked, reason: 'harmless' } }, asked)
    const forged = await patch('forged', limits, { changes: [{ op: 'set_limits', max_parallel: 500 }] })
    const parted = partOf([
      await candidate('gate'),
      await patch('one', limits),
      await patch('two', limits),
      await patch('three', [{ op: 'set_limits', max_parallel: 3 }]),
      await patch('decided', limits, { status: 'applied' }),
      forged,
      bound,
      retold,
    ])
    expect(ids(parted.alike)).toEqual(['one', 'two', 'bound'])
    expect(ids(parted.apart)).toEqual(['gate', 'three'])
    expect(parted.out.map(({ row, out }) => [row.operation_id, out])).toEqual([
      ['decided', 'moved'],
      ['forged', 'differs'],
      ['retold', 'differs'],
    ])
  })
})

describe('votes', () => {
  it('are sent four at a time; none is sent after an answer that stops them', async () => {
    const sent: number[] = []
    const under_way = new Set<number>()
    const seen: number[] = []
    await sendEach([1, 2, 3, 4, 5, 6, 7, 8, 9], async (item) => {
      sent.push(item)
      under_way.add(item)
      seen.push(under_way.size)
      await new Promise((done) => setImmediate(done))
      under_way.delete(item)
      return item === 5 ? 'stop' : 'on'
    })
    expect(Math.max(...seen)).toBe(4)
    expect(sent).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })
})

describe('rows of the open inbox', () => {
  const at = (names: string) => [...names].map((row) => ({ row, gone: false }))
  const place = (shown: ReturnType<typeof at>, fresh: string, fixed: number) => {
    const { rows, news } = placed(shown, [...fresh], (row) => row, fixed)
    return [rows.map(({ row, gone }) => (gone ? `(${row})` : row)).join(''), news]
  }

  it('keep their places up to the one with the pointer: new ones that would move it are counted', () => {
    expect(place(at('bd'), 'abcd', 2)).toEqual(['bd', 2])
    expect(place(at('bd'), 'abcd', 1)).toEqual(['bcd', 1])
    expect(place(at('bd'), 'bdef', 2)).toEqual(['bdef', 0])
    expect(place(at('bd'), 'bdef', Number.POSITIVE_INFINITY)).toEqual(['bd', 2])
    expect(place(at('bd'), 'db', 2)).toEqual(['bd', 0])
    expect(place(at('bd'), 'd', 2)).toEqual(['(b)d', 0])
    expect(place(at('abcd'), 'xbd', 2)).toEqual(['(a)b(c)d', 1])
  })

  it('are in the order of the read otherwise; one that no longer waits follows the row that it followed', () => {
    expect(place(at('bd'), 'abcd', 0)).toEqual(['abcd', 0])
    expect(place(at('abcd'), 'ad', 0)).toEqual(['a(b)(c)d', 0])
    expect(place(at('ab'), 'cb', 0)).toEqual(['(a)cb', 0])
    expect(place([{ row: 'a', gone: true }, ...at('b')], 'ab', 0)).toEqual(['ab', 0])
  })
})

it('lists what ends within an hour first, then failures, patches and later deadlines, those of an operation together', () => {
  const at = (hours: number) => new Date(Date.UTC(2026, 0, 1) + hours * 3_600_000).toISOString()
  const lines = linesOf({
    as_of: { time: at(0), seq: '1' },
    failures: [{ operation_id: 'failed' }, { operation_id: 'mended' }],
    patches: [
      { operation_id: 'any', patch_id: 'late', deadline_at: at(2) },
      { operation_id: 'any', patch_id: 'open', deadline_at: null },
      { operation_id: 'any', patch_id: 'due', deadline_at: at(0.9) },
      { operation_id: 'mended', patch_id: 'mends', deadline_at: null },
    ],
    expiring: [
      { kind: 'operation', operation_id: 'op', plan_id: null, gate_id: null, expires_at: at(0.5) },
      { kind: 'operation', operation_id: 'mended', plan_id: null, gate_id: null, expires_at: at(0.8) },
      { kind: 'plan', operation_id: null, plan_id: 'plan', gate_id: null, expires_at: at(3) },
    ],
  } as unknown as Waiting)
  expect(lines.map(lineKey)).toEqual([
    ...['operation op ', 'mended', 'mends', 'operation mended ', 'due', 'late', 'open', 'failed', 'plan plan '],
  ])
})
