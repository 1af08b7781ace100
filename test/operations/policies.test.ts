import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { loadPolicies, type PolicyRequest } from '../../apps/operations/policies/cedar.ts'

const dir = mkdtempSync(join(tmpdir(), 'signalbox-policies-'))
afterAll(() => rmSync(dir, { recursive: true }))

const AGES = [-3, 0, 59.9, 60, 61, 300, 300.9, 301, 900, 901, 5000]
const people = fc.constantFrom('ann', 'bob')
const groups = fc.subarray(['netops', 'dba'])
const request: fc.Arbitrary<PolicyRequest> = fc
  .record({
    action: fc.constantFrom('gate.approve', 'gate.reject', 'gate.break_glass', 'operation.force_cancel' as const),
    user_id: people,
    kind: fc.constantFrom('person', 'machine' as const),
    groups,
    granted: fc.boolean(),
    both: fc.boolean(),
    as_groups: groups,
    auth_age_s: fc.constant(0),
    requester: people,
    involved: fc.subarray(['ann', 'bob']),
    four_eyes: fc.boolean(),
    eligible: groups,
  })
  .map(({ requester, involved, four_eyes, eligible, ...asked }) => ({
    ...asked,
    object: {
      type: asked.action === 'operation.force_cancel' ? 'Operation' : 'Gate',
      id: 'op/go',
      requester,
      behind: [],
      involved,
      four_eyes,
      groups: eligible,
      risk: 'low',
      environment: null,
      types: [],
      regions: [],
      labels: {},
    },
  }))

describe('policies', () => {
  /** A site's rule that computes with the age in its own way. */
  const odd = `@id("too_old") forbid (principal, action == Action::"gate.reject", resource) when { context.auth_age_s * 2 > 120 };`

  it.each([
    ['as shipped', undefined],
    ['with a rule of the site', odd],
  ])('answer from memory as when evaluated, %s', (_, site) => {
    const folder = site === undefined ? undefined : dir
    if (site !== undefined) writeFileSync(join(dir, 'site.cedar'), site)
    const remembering = loadPolicies(folder)
    fc.assert(
      fc.property(request, (asked) => {
        for (const auth_age_s of AGES)
          expect(remembering.refuse({ ...asked, auth_age_s })).toEqual(
            loadPolicies(folder).refuse({ ...asked, auth_age_s }),
          )
      }),
      { numRuns: 8 },
    )
  })

  it('tell gates apart if a rule names one', () => {
    const one = `@id("not_this") forbid (principal, action == Action::"gate.reject", resource == Gate::"op/go");`
    writeFileSync(join(dir, 'site.cedar'), one)
    const { refuse } = loadPolicies(dir)
    const [{ object, ...asked }] = fc.sample(request, 1) as [PolicyRequest]
    const ask = (id: string) => {
      const named = { ...object, type: 'Gate' as const, id, four_eyes: false, groups: [] }
      return refuse({ ...asked, action: 'gate.reject', granted: true, object: named })?.extra?.policy_ids ?? []
    }
    expect(ask('op/other')).not.toContain('not_this')
    expect(ask('op/go')).toContain('not_this')
  })

  it('of a site on interventions hold for a delegation, too, and those on a delegation for it alone', () => {
    const forbid = (id: string, act: string) =>
      `@id("${id}") forbid (principal, action == Action::"operation.${act}", resource) when { resource.environment == "prod" };`
    writeFileSync(join(dir, 'site.cedar'), `${forbid('by_hand', 'intervene')}\n${forbid('handed_on', 'delegate')}`)
    const { refuse } = loadPolicies(dir)
    const [{ object, ...asked }] = fc.sample(request, 1) as [PolicyRequest]
    const ask = (action: PolicyRequest['action'], environment: string) => {
      const on = { ...object, type: 'Operation' as const, environment }
      const person = { kind: 'person' as const, granted: true, auth_age_s: 0 }
      return refuse({ ...asked, ...person, action, object: on })?.extra?.policy_ids
    }
    expect(ask('operation.delegate', 'prod')).toEqual(['by_hand', 'handed_on'])
    expect(ask('operation.intervene', 'prod')).toEqual(['by_hand'])
    for (const action of ['operation.delegate', 'operation.intervene'] as const)
      expect(ask(action, 'test')).toBeUndefined()
  })

  it('evaluate a question once', () => {
    let asked = 0
    const { refuse } = loadPolicies(undefined, () => (asked += 1))
    const [question] = fc.sample(request, 1)
    const { object, ...known } = { ...(question as PolicyRequest), granted: true }
    for (let age = 0; age < 100; age++) refuse({ ...known, object: { ...object, id: `op/${age}` }, auth_age_s: age })
    expect(asked).toBe(1)
  })
})
