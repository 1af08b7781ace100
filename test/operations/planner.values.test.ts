import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expandValue, formsOf, resolveValue, ValueError } from '../../apps/shared/expressions/values.ts'

const scope = {
  roots: { target: { name: 'h', tags: ['a'], odd: { $from: 'x' } }, params: { n: 3 } },
  nodeOf: (step: string) => (step === 'one' ? 'one.h' : undefined),
}
const expand = (value: unknown) => expandValue(value, scope)
const codeOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    if (error instanceof ValueError) return `${error.code} ${error.pointer}`
    throw error
  }
  return 'fine'
}

describe('values of a plan', () => {
  it('come from references, joins and expressions', () => {
    expect(
      expand({
        a: { $from: 'target/name' },
        b: { $join: ['x-', { $from: 'params/n' }] },
        c: { $cel: 'params.n + 1.0' },
      }),
    ).toEqual({ a: 'h', b: 'x-3', c: 4 })
  })

  it('leave out a member that an expression knows no value of', () => {
    expect(expand({ a: { $cel: 'target.?gone' }, b: { $cel: 'target.?name' }, c: [{ $cel: 'target.?gone' }] })).toEqual(
      { b: 'h', c: [null] },
    )
    expect(Object.keys(expand({ a: { $cel: 'target.?gone' } }) as object)).toEqual([])
    expect(expand({ a: { $cel: 'target.?gone.orValue(null)' } })).toEqual({ a: null })
  })

  it('keep references that only dispatch can resolve, by the full id of the node', () => {
    const kept = expand({ $join: ['/v/', { $from: 'target/name' }, '/', { $from: 'nodes/one/outputs/id' }] })
    expect(kept).toEqual({ $join: ['/v/h/', { $from: 'nodes/one.h/outputs/id' }] })
    expect(resolveValue(kept, { nodes: { 'one.h': { outputs: { id: 7 } } } })).toBe('/v/h/7')
  })

  it('leave secrets to the last moment', () => {
    const kept = expand({ authorization: { $secret: 'token' } })
    expect(resolveValue(kept, { nodes: {} })).toEqual({ authorization: { $secret: 'token' } })
    expect(resolveValue(kept, { nodes: {}, secrets: { token: 's3' } })).toEqual({ authorization: 's3' })
  })

  it('treat data that looks like a form as data', () => {
    const kept = expand({ x: { $from: 'target/odd' }, y: { $$: { $secret: 'token' } } })
    expect(resolveValue(kept, { nodes: {}, secrets: { token: 's3' } })).toEqual({
      x: { $from: 'x' },
      y: { $secret: 'token' },
    })
  })

  it('name missing values and their places', () => {
    expect(codeOf(() => expand({ a: [{ $from: 'target/nothing' }] }))).toBe('unknown_reference /a/0/$from')
    expect(codeOf(() => expand({ $from: 'nodes/two/outputs/x' }))).toBe('unknown_reference /$from')
    expect(codeOf(() => expand({ $from: 'target/__proto__/x' }))).toBe('unknown_reference /$from')
    expect(codeOf(() => expand({ $cel: 'target.nothing' }))).toBe('expression_error ')
    expect(codeOf(() => expand({ $join: [{ $from: 'target/tags' }] }))).toBe('expression_error ')
    expect(codeOf(() => resolveValue({ $from: 'nodes/x/outputs/y' }, { nodes: {} }))).toBe('unknown_reference ')
    expect(codeOf(() => formsOf({ a: { $from: 'target/name', b: 1 } }))).toBe('malformed /a')
  })

  describe('of each target', () => {
    const web = (name: string, role?: string) => ({
      ...{ name, labels: role ? { role } : {} },
      observed_state: { ip: `ip-${name}` },
    })
    const targets = [web('a', 'web'), web('b', 'db'), web('c', 'web'), web('d')]
    const each = (body: unknown, of: readonly Record<string, unknown>[] = targets) =>
      expandValue({ x: { $each: body } }, { ...scope, targets: of })
    const address = { $from: 'target/observed_state/ip' }

    it('are one value per target by its key, or the keys of those that share a value', () => {
      expect(each({ key: 'target/name', value: { address, n: { $from: 'params/n' } } })).toEqual({
        x: Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, { address: `ip-${name}`, n: 3 }])),
      })
      expect(each({ key: 'target/name', by: 'target/labels/role' })).toEqual({ x: { web: ['a', 'c'], db: ['b'] } })
      expect(each({ key: 'target/name', value: { $from: 'nodes/one/outputs/id' } }, [web('a')])).toEqual({
        x: { a: { $from: 'nodes/one.h/outputs/id' } },
      })
    })

    it('are limited in number, for all values of one plan together', () => {
      const shared = { ...scope, targets: Array.from({ length: 1000 }, (_, i) => web(`h${i}`)), count: { members: 0 } }
      const one = (count = shared.count) =>
        expandValue({ $each: { key: 'target/name', value: 1 } }, { ...shared, count })
      for (let i = 0; i < 50; i += 1) expect(one()).toHaveProperty('h999', 1)
      expect(() => one()).toThrow(/more than 50000 members in this plan\. Select fewer targets/)
      expect(codeOf(one)).toBe('malformed ')
      expect(one({ members: 0 })).toHaveProperty('h999', 1)
    })

    it('name the target at fault, a key that two share, and a plan without targets', () => {
      const faultOf = (body: unknown, of?: readonly Record<string, unknown>[]) => {
        try {
          return each(body, of)
        } catch (error) {
          if (error instanceof ValueError) return `${error.code} ${error.pointer} ${error.message}`
          throw error
        }
      }
      const value = { address }
      expect(faultOf({ key: 'target/name', value }, [web('a'), { name: 'b' }])).toBe(
        'unknown_reference /x/$each/value/address/$from "target/observed_state/ip" refers to an unknown value. The target is "b".',
      )
      expect(faultOf({ key: 'target/name', value: 1 }, [web('a'), web('a')])).toMatch(/More than one .* key "a"/)
      expect(faultOf({ key: 'target/name', value: 1 }, [{ name: '$from' }])).toMatch(/not a string that can be a key/)
      expect(faultOf({ key: 'target/labels', value: 1 })).toMatch(/"target\/labels" of the target "a" is not a string/)
      expect(faultOf({ key: 'target/name', value }, [])).toMatch(/^unknown_reference \/x The plan has no targets/)
      for (const body of [
        'target/name',
        { key: 'target/name' },
        { key: 'name', value },
        { key: 'target/name', by: 'plan/kind' },
        { key: 'target/name', by: 'target/labels/role', value },
        { key: 'target/name', value, when: 'true' },
        { key: 'target/name', value: { $cel: 'target.name' } },
        { key: 'target/name', value: { a: { $each: { key: 'target/name', value } } } },
      ])
        expect(faultOf(body), JSON.stringify(body)).toMatch(/^malformed \/x\/\$each/)
      expect(codeOf(() => resolveValue({ $each: { key: 'target/name', value } }, { nodes: {} }))).toBe('malformed ')
    })
  })

  it('any data of the catalog passes through unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (data) => {
        const kept = expandValue(
          { x: { $from: 'target/data' } },
          { roots: { target: { data } }, nodeOf: () => undefined },
        )
        expect(resolveValue(kept, { nodes: {} })).toEqual({ x: data })
      }),
    )
  })
})
