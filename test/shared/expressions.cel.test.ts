import { describe, expect, it } from 'vitest'
import { foldCondition } from '../../apps/operations/graph/conditions.ts'
import { allWithinTime, CEL_LIMITS, CelError, compileCel, withinTime } from '../../apps/shared/expressions/cel.ts'

const value = (source: string, context: Record<string, unknown> = {}) =>
  compileCel(source, ['target', 'params', 'nodes']).evaluate(context)
const refusal = (source: string, context: Record<string, unknown> = {}): string => {
  try {
    value(source, context)
  } catch (error) {
    expect(error).toBeInstanceOf(CelError)
    return (error as Error).message
  }
  throw new Error(`${source} was not refused`)
}

describe('expressions', () => {
  it('compare JSON numbers with any literal', () => {
    expect(value('target.n == 200 && target.n > 1.5', { target: { n: 200 } })).toBe(true)
  })

  it('give plain JSON', () => {
    expect(value('{"a": [1, target.x], "b": null}', { target: { x: 2.5 } })).toEqual({ a: [1, 2.5], b: null })
  })

  it('treat a missing key as an error, never as false', () => {
    expect(refusal('target.x == 1', { target: {} })).toContain('No such key: x')
    expect(value('has(target.x) && target.x == 1', { target: {} })).toBe(false)
    expect(value('target.?x.orValue(7)', { target: {} })).toBe(7)
  })

  it('see only own members', () => {
    expect(refusal('target.constructor', { target: {} })).toContain('No such key')
    expect(refusal('target.__proto__', { target: {} })).toContain('No such key')
  })

  it('must be true or false where they are conditions', () => {
    expect(() => compileCel('1', []).test({})).toThrow(/not true or false/)
  })
})

describe('limits', () => {
  it.each([
    ['bytes', `"${'x'.repeat(CEL_LIMITS.bytes)}"`, /longer than 2048 bytes/],
    [
      'nodes',
      `[${Array(CEL_LIMITS.nodes + 1)
        .fill('1')
        .join()}]`,
      /500/,
    ],
    ['depth', `${'('.repeat(40)}1${')'.repeat(40)}`, /32/],
    ['matches, as a method', '"a".matches("a")', /"matches" is not available/],
    ['matches, as a function', 'matches("a", "a")', /"matches" is not available/],
    ['loops in loops in loops', 'target.all(a, target.all(b, target.all(c, true)))', /nested deeper than 2/],
    ['a name that hides a value', 'target.all(params, true)', /already the name/],
    ['an unknown name', 'secrets.token', /Unknown variable: secrets/],
    ['types that cannot fit', '1 + "a"', /no such overload/],
    ['text that is no expression', 'target ==', /EOF/],
  ])('%s', (_, source, message) => {
    expect(refusal(source, { target: [] })).toMatch(message)
    // The refusals that contain it end the sentence.
    expect(refusal(source, { target: [] })).not.toMatch(/\.$/)
  })
})

describe('conditions at dispatch', () => {
  const roots = { target: { release: 'it\'s "1"', n: 3, tags: ['a'] }, params: {}, after: {}, plan: {}, batch: {} }
  const fold = (source: string) =>
    foldCondition(source, roots, (step) => (step === 'deploy' ? 'deploy.h.1' : undefined))
  const test = (source: string, previous: unknown) =>
    compileCel(fold(source), ['nodes']).evaluate({ nodes: { 'deploy.h.1': { outputs: { previous } } } })

  it("use the plan's values, and name steps by their nodes", () => {
    expect(test('nodes.deploy.outputs.previous == target.release', 'it\'s "1"')).toBe(true)
    expect(test('nodes.deploy.outputs.previous in target.tags', 'b')).toBe(false)
    expect(test('nodes.deploy.outputs.previous > target.n', 4)).toBe(true)
  })

  it('keep a guard in front of a missing value', () => {
    expect(test('has(target.x) && target.x == nodes.deploy.outputs.previous', 1)).toBe(false)
    expect(test('target.?x.orValue("none") == nodes.deploy.outputs.previous', 'none')).toBe(true)
    expect(() => test('target.x == nodes.deploy.outputs.previous', 1)).toThrow(CelError)
  })

  it('refuse an unknown step', () => {
    expect(() => fold('nodes.verify.outputs.x == 1')).toThrow(/no step "verify"/)
  })
})

describe('the work of an expression on its input', () => {
  const numbers = (n: number) => Array.from({ length: n }, (_, i) => i)

  it.each([
    ['a loop in a loop over much', 'target.all(a, target.all(b, a <= b || true))', 200_000, /more than 4472 values/],
    ['lists put together in a loop in a loop', 'target.map(a, target.map(b, target + target))', 1000, /more than 271/],
    ['a search in a loop', 'target.all(a, a in target)', 200_000, /longer than 2000 ms/],
    ['lists of lists of lists', 'target.map(a, target.map(b, target))', 1000, /more than 100000 parts/],
  ])('ends: %s', (_, source, n, message) => {
    const began = performance.now()
    expect(refusal(source, { target: numbers(n) })).toMatch(message)
    expect(performance.now() - began).toBeLessThan(10_000)
  })

  it('continues if it is small, however it is written', () => {
    expect(value('target.exists(a, target.exists(b, a == b + 1.0))', { target: numbers(100) })).toBe(true)
    expect(value('target.all(a, a >= 0.0)', { target: numbers(100_000) })).toBe(true)
  })

  it('has a time in common with others: who goes on without one that came too late is told of it at the end', () => {
    const all = () => value('target.all(a, a >= 0.0)', { target: numbers(100_000) })
    const work = () => [all(), refusal('1 + 1')]
    expect(withinTime(1, work)).toEqual([true, expect.stringMatching(/have together$/)])
    expect(() => allWithinTime(1, work)).toThrow(CelError)
    expect(allWithinTime(60_000, all)).toBe(true)
    expect(value('1 + 1')).toBe(2)
  })
})
