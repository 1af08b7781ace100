import { describe, expect, it } from 'vitest'
import { createRecount } from '../../apps/shared/contracts/client/recount.ts'

/** operations.md 6.3: a gate that no person passed, in the chains of this build and of older ones. */
const RULE = {
  ...{ gate_id: 'g', kind: 'approval', quorum: 1, groups: [], more_groups: [] },
  ...{ four_eyes: true, reject_rule: 'any', on_timeout: 'reject' },
}
const FREEZE = { ...RULE, kind: 'freeze', freeze_id: 'f' }
/** The same gate as an older build states it. */
const { freeze_id: _, ...OLDER } = FREEZE
const AT = '2026-01-01T12:00:00.000000Z'
const LATER = '2026-01-01T13:00:00Z'
const SYSTEM = { kind: 'system', id: 'system', name: 'Signalbox' }

const start = (rule: object, freezes?: object) => ({
  ...{ kind: 'start', at: AT, actor: { kind: 'user', id: 'u', name: 'olga' } },
  subject: { type: 'operation', id: 'o', authority: 1, involved: ['u'], rules: [rule], ...(freezes && { freezes }) },
})
const calendar = (freezes: object, kind = 'command') => ({
  ...{ kind, at: AT, actor: SYSTEM },
  subject: { type: 'operation', id: 'o', freezes },
})
const decision = (status: string, actor: object = SYSTEM, more: object = {}) => ({
  ...{ kind: 'gate_decision', at: AT, actor },
  subject: { type: 'gate', id: 'g', round: 1, status, digest: 'd', ...more },
})
const vote = {
  ...{ kind: 'vote', at: AT, actor: { kind: 'user', id: 'v', name: 'eva' } },
  subject: { type: 'gate', id: 'g', round: 1, decision: 'approve', digest: 'd', voter: 'v', group: null },
}
const bypass = { ...decision('bypassed', { kind: 'user', id: 'v', name: 'eva' }), kind: 'exception' }
const over = { freeze_id: 'f' }
const raised = (rule: object) => ({
  ...{ kind: 'policy_result', at: AT, actor: SYSTEM },
  subject: { type: 'gate', id: 'g', rules: [rule] },
})
const NETOPS = { ...RULE, groups: [{ group: 'netops', min: 1 }] }
const LEADS = [...NETOPS.groups, { group: 'leads', min: 1 }]
const of = (group: string, voter = 'v') => ({
  ...{ ...vote, actor: { ...vote.actor, id: voter } },
  subject: { ...vote.subject, group, voter },
})
const service = { kind: 'service', id: 'svc:ci', name: 'ci' }

describe('the recount of an evidence chain', () => {
  it.each([
    ['a vote', [start(RULE), vote, decision('approved', vote.actor)]],
    ['break-glass', [start(RULE), bypass]],
    [
      'votes under rules that were raised',
      [
        start(NETOPS),
        raised({ ...NETOPS, groups: LEADS }),
        of('netops'),
        of('leads', 'w'),
        decision('approved', vote.actor),
      ],
    ],
    ['its service', [start({ ...RULE, kind: 'external_check', service: 'ci' }), decision('approved', service)]],
    ['silence that its rules allow', [start({ ...RULE, on_timeout: 'approve' }), decision('approved')]],
    ['silence that refuses', [start(RULE), decision('expired')]],
    ['a freeze that was ended', [start(FREEZE, { f: LATER }), calendar({}), decision('approved', SYSTEM, over)]],
    ['a freeze that was overridden', [start(FREEZE, { f: LATER }), calendar({}, 'exception'), decision('approved')]],
    ['a freeze that ran out', [start(FREEZE, { f: '2026-01-01T12:00:00Z' }), decision('approved', SYSTEM, over)]],
    ['a freeze that was gone before the start', [start(FREEZE, {}), decision('approved', SYSTEM, over)]],
    [
      'a freeze that is named like a member of every object',
      [start({ ...FREEZE, freeze_id: 'constructor' }, {}), decision('approved', SYSTEM, { freeze_id: 'constructor' })],
    ],
    ['a freeze, as an older build wrote it', [start(OLDER), decision('approved')]],
    ['a freeze, begun by an older build', [start(OLDER), calendar({}), decision('approved', SYSTEM, over)]],
  ])('takes a gate that closes by %s', (_how, records) => {
    const recount = createRecount()
    expect(records.map((record) => recount.take(record))).toEqual(records.map(() => undefined))
  })

  it.each([
    ['lasts', [start(FREEZE, { f: LATER }), decision('approved', SYSTEM, over)]],
    ['is not the one that ended', [start(FREEZE, { f: LATER }), decision('approved', SYSTEM, { freeze_id: 'x' })]],
    ['is put again', [start(FREEZE, {}), calendar({ f: LATER }), decision('approved', SYSTEM, over)]],
    ['is none', [start(RULE, {}), decision('approved', SYSTEM, over)]],
  ])('finds a gate passed for a freeze that %s', (_how, records) => {
    const recount = createRecount()
    expect(records.map((record) => recount.take(record)).at(-1)).toMatch(/approved by silence/)
  })

  it.each([
    ['a vote of the group that was added', { groups: LEADS }, /fewer than 1 votes from its group "leads"/],
    ['a vote more', { quorum: 2 }, /approved by 1 of 2 votes/],
  ])('asks for %s from then on, and nothing lowers it again', (_what, more, why) => {
    const recount = createRecount()
    const records = [start(NETOPS), raised({ ...NETOPS, ...more }), raised(NETOPS), of('netops')]
    for (const record of records) expect(recount.take(record)).toBe(undefined)
    expect(recount.take(decision('approved', vote.actor))).toMatch(why)
  })

  it.each([
    ['fewer votes', { quorum: 0 }],
    ['any group', { groups: [] }],
    ['one more group, of which none is needed', { groups: [...NETOPS.groups, { group: 'storage', min: 0 }] }],
    ['another kind', { kind: 'freeze', freeze_id: 'f' }],
    ['those who take part', { four_eyes: false }],
    ['silence', { on_timeout: 'approve' }],
  ])('takes no later rule that asks for less: %s', (_what, more) => {
    const recount = createRecount()
    const records = [start(NETOPS, { f: AT }), raised({ ...NETOPS, ...more })]
    for (const record of records) expect(recount.take(record)).toBe(undefined)
    expect(recount.take(decision('approved'))).toMatch(/approved by silence/)
    expect(recount.take(of('storage'))).toBe(undefined)
    expect(recount.take(decision('approved', vote.actor))).toMatch(/eva is in none of its groups/)
  })
})
