import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GateSubject } from '../../apps/console/api/types.ts'
import { differencesOf } from '../../apps/console/votes/differences.ts'
import { canonicalJson } from '../../apps/shared/contracts/client/canonical.ts'
import { digestOf, shortDigest } from '../../apps/shared/contracts/client/digest.ts'
import { digest } from '../../apps/shared/data/digest.ts'

describe('digest in the browser', () => {
  it("equals the server's digest for any JSON", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        expect(await digestOf(value)).toBe(digest(value))
      }),
      { numRuns: 300 },
    )
  })

  it('does not depend on the order of members or the spelling of the JSON', async () => {
    const subject = { b: [1, 2.5, 'ü'], a: { y: null, x: true } }
    const same = JSON.parse('{ "a": { "x": true, "y": null }, "b": [1.0, 2.50, "\\u00fc"] }') as unknown
    expect(await digestOf(same)).toBe(await digestOf(subject))
  })

  it('changes with any visible value', async () => {
    const shown = { releases: [{ node_id: 'a', inputs: { release: '2.4.0' } }] }
    expect(await digestOf({ releases: [{ node_id: 'a', inputs: { release: '2.4.1' } }] })).not.toBe(
      await digestOf(shown),
    )
  })

  it('sorts members by UTF-16 code units and writes numbers as RFC 8785 does', () => {
    expect(canonicalJson({ '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, ö: 7 })).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
    )
    expect(canonicalJson([1 / 3, 1e30, 4.5, 2e-3, 1e-27, -0])).toBe('[0.3333333333333333,1e+30,4.5,0.002,1e-27,0]')
  })

  it('is shortened to the part that people compare', () => {
    expect(shortDigest('sha256:1f3a9c02aa')).toBe('1f3a9c02')
  })
})

describe('the difference between two questions', () => {
  const field = (before: unknown, after: unknown) => ({ path: 'size', before, after })
  const preview = (after: number, binding = 'exact') => ({
    format: 'signalbox/preview@1',
    binding,
    changes: [
      { id: 'disk/a', action: 'update', fields: [{ path: 'labels', before: ['a'], after: ['b'] }] },
      { id: 'disk/b', action: 'update', fields: [field(1, after)] },
    ],
  })
  const released = { node_id: 'n', name: 'n', executor: 'opentofu', target_id: 'a', inputs: { slots: 1 } }
  const read: GateSubject = {
    ...{ v: 2, operation_id: 'o', gate_id: 'go', kind: 'approval', policy: { key: 'k', digest: 'd' } },
    asked: {
      requester: { kind: 'user', id: 'u', name: 'olga' },
      title: 't',
      reason: 'r',
      ticket: null,
      plan_hash: 'h',
    },
    releases: [{ ...released, on_failure: 'pause' as never, spec_digest: 's', step: 'apply', batch: null }],
    changes: [{ resource_id: 'a', change: 'update', fields: [field(1, 2)] }],
    bound_outputs: [{ pointer: '/plan/preview', value: preview(2) }],
  }
  const [release, change] = [read.releases[0], read.changes[0]] as [
    GateSubject['releases'][number],
    GateSubject['changes'][number],
  ]

  it.each<[part: string, now: Partial<GateSubject>, id: string, path: string, before: unknown, after: unknown]>([
    [
      'a preview',
      { bound_outputs: [{ pointer: '/plan/preview', value: preview(3) }] },
      '/plan/preview',
      '/changes/disk/b/fields/size/after',
      2,
      3,
    ],
    [
      'its binding',
      { bound_outputs: [{ pointer: '/plan/preview', value: preview(2, 'forecast') }] },
      '/plan/preview',
      '/binding',
      'exact',
      'forecast',
    ],
    ['an executor', { releases: [{ ...release, executor: 'git' }] }, 'n', '/executor', 'opentofu', 'git'],
    ['a step', { releases: [{ ...release, step: 'verify' }] }, 'n', '/step', 'apply', 'verify'],
    ['a batch', { releases: [{ ...release, batch: 'b' }] }, 'n', '/batch', null, 'b'],
    ['a target', { releases: [{ ...release, target_id: 'b' }] }, 'n', '/target_id', 'a', 'b'],
    ['an input', { releases: [{ ...release, inputs: { slots: 2 } }] }, 'n', '/inputs/slots', 1, 2],
    ['a kind of change', { changes: [{ ...change, change: 'replace' }] }, 'a', '/change', 'update', 'replace'],
    ['a value', { changes: [{ ...change, fields: [field(1, 3)] }] }, 'a', 'size', 2, 3],
    [
      'who asks',
      { asked: { ...(read.asked as NonNullable<GateSubject['asked']>), ticket: 'C' } },
      'go',
      '/asked/ticket',
      null,
      'C',
    ],
  ])('names %s', (_, now, id, path, before, after) => {
    expect(differencesOf(read, { ...read, ...now })).toEqual([
      { resource_id: id, change: 'update', fields: [{ path, before, after }] },
    ])
  })

  it('names an intervention', () => {
    const intervention = { type: 'skip', node_id: 'n', payload: {}, reason: 'r', ticket: null }
    const author = { id: 'u', name: 'olga' }
    const one = { ...read, intervention: { ...intervention, author } }
    const other = { ...read, intervention: { ...intervention, type: 'set_input', payload: { slots: 1 }, author } }
    expect(differencesOf(one, other)[0]?.fields).toEqual([
      { path: '/intervention/type', before: 'skip', after: 'set_input' },
      { path: '/intervention/payload/slots', before: null, after: 1 },
    ])
  })

  it('is empty for the same question', () => {
    expect(differencesOf(read, structuredClone(read))).toEqual([])
  })
})
