import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
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
    expect(shortDigest('sha256:1f3a9c02aa')).toBe('1f3a 9c02')
  })
})
