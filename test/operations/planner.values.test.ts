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
