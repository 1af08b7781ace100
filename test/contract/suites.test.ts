import fc from 'fast-check'
import suite from 'json-patch-test-suite/tests.json' with { type: 'json' }
import { describe, expect, it } from 'vitest'
import { parseFilter } from '../../apps/catalog/document/filter.ts'
import { jsonPatch, type PatchOperation } from '../../apps/catalog/document/json-patch.ts'
import type { Json } from '../../apps/catalog/document/pointers.ts'
import { violationsOf } from '../../apps/catalog/document/schemas.ts'
import { JSON_LIMITS, scanJson } from '../../apps/shared/data/json.ts'
import { compileSchema } from '../../apps/shared/data/json-schema.ts'
import { mergeDiff, mergePatch } from '../../apps/shared/data/merge-patch.ts'
import { equalJson } from '../../apps/shared/data/pointer.ts'
import { AppError } from '../../apps/shared/errors.ts'

/**
 * The requirements of the standards in their own words: RFC 7396's appendix, the public JSON Patch suite (Apache-2.0,
 * pinned in the lock file). The JSON Schema suite is not published for a lock file: json-schema-suite.ts is pointed at
 * a copy.
 */
describe('JSON Merge Patch, RFC 7396 appendix A', () => {
  it.each<[original: Json, patch: Json, result: Json]>([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j with %j is %j', (original, patch, result) => {
    const before = structuredClone(original)
    expect(mergePatch(original, patch)).toEqual(result)
    expect(original).toEqual(before)
  })

  it('leaves out a null inside a member that is new', () => {
    expect(mergePatch({}, { a: { b: null, c: { d: null, e: 1 } } })).toEqual({ a: { c: { e: 1 } } })
  })

  it('keeps a member named __proto__ an ordinary member', () => {
    const patch = JSON.parse('{"a": {"__proto__": {"b": 1}}}')
    expect(JSON.stringify(mergePatch({}, patch))).toBe('{"a":{"__proto__":{"b":1}}}')
    expect(({} as { b?: number }).b).toBeUndefined()
  })

  it('is undone by the patch that leads back', () => {
    const tree = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.integer(),
        fc.string(),
        fc.array(fc.integer(), { maxLength: 3 }),
        tie('object'),
      ),
      object: fc.dictionary(fc.string({ maxLength: 4 }), tie('value'), { maxKeys: 4 }),
    })).object as fc.Arbitrary<Record<string, unknown>>
    fc.assert(
      fc.property(tree, tree, (before, after) => {
        expect(equalJson(mergePatch(before, mergeDiff(before, after)), after)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('JSON Patch, the public suite', () => {
  type Case = {
    comment?: string
    doc: Json
    patch: PatchOperation[]
    expected?: Json
    error?: string
    disabled?: boolean
  }
  const cases = (suite as unknown as Case[]).filter(({ disabled }) => disabled !== true)
  it.each(cases.map((one, index) => [`${index} ${one.comment ?? one.error ?? ''}`, one] as const))(
    '%s',
    (_, { doc, patch, expected, error }) => {
      const before = structuredClone(doc)
      if (error !== undefined) expect(() => jsonPatch(doc, patch)).toThrow(AppError)
      else if (expected !== undefined) expect(jsonPatch(doc, patch)).toEqual(expected)
      else jsonPatch(doc, patch)
      expect(doc).toEqual(before)
    },
  )
  it('is the whole suite', () => expect(cases.length).toBeGreaterThan(70))
})

describe('filters, the grammar of the catalog', () => {
  const shape = (text: string): unknown => short(parseFilter(text))
  const short = (filter: ReturnType<typeof parseFilter>): unknown =>
    filter.kind === 'test'
      ? `${filter.field.join('/')}${filter.comparison}${filter.value}`
      : filter.kind === 'not'
        ? ['not', short(filter.item)]
        : [filter.kind, ...filter.items.map(short)]

  it.each<[text: string, means: unknown]>([
    ['a=1', 'a=1'],
    ['a=1 AND b=2', ['and', 'a=1', 'b=2']],
    ['a=1 AND b=2 OR c=3', ['and', 'a=1', ['or', 'b=2', 'c=3']]],
    ['(a=1 AND b=2) OR c=3', ['or', ['and', 'a=1', 'b=2'], 'c=3']],
    ['NOT a=1', ['not', 'a=1']],
    ['-a=1', ['not', 'a=1']],
    ['NOT (a=1 OR b=2)', ['not', ['or', 'a=1', 'b=2']]],
    ['a!=1', 'a!=1'],
    ['a<=1 AND b>=2', ['and', 'a<=1', 'b>=2']],
    ['a:*', 'a:*'],
    ['labels.env="prod x"', 'labels/env=prod x'],
    ['labels."team/a"=b', 'labels/team/a=b'],
    ['a="\\u0041\\n\\""', 'a=A\n"'],
    ['a = eu1-web.x/y@z+1', 'a=eu1-web.x/y@z+1'],
    ['a=-5', 'a=-5'],
    ['desired_state.x.y>3', 'desired_state/x/y>3'],
  ])('%s', (text, means) => expect(shape(text)).toEqual(means))

  it.each<[text: string, offset: number]>([
    ['', 0],
    ['a', 1],
    ['a=', 2],
    ['a=1 b=2', 4],
    ['a=1 AND', 7],
    ['AND a=1', 0],
    ['(a=1', 4],
    ['a=1)', 3],
    ['a="x', 2],
    ['a="\\x"', 2],
    ['a=1 && b=2', 4],
    ['1a=2', 0],
    ['a==1', 2],
    ['a.=1', 2],
  ])('%j is refused at %i', (text, offset) => {
    try {
      parseFilter(text)
      expect.unreachable()
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const { code, options } = error
      const [violation] = (options.violations ?? []) as { offset?: number }[]
      expect([code, violation?.offset]).toEqual(['filter_invalid', offset])
    }
  })
})

describe('an input made to keep us busy ends soon', () => {
  const within = (ms: number, act: () => unknown) => {
    const started = performance.now()
    try {
      act()
    } catch (error) {
      if (!(error instanceof AppError)) throw error
    }
    expect(performance.now() - started).toBeLessThan(ms)
  }
  const LONG = JSON_LIMITS.string_bytes

  it.each(['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '(.*a){20}', '^(([a-z])+.)+[A-Z]([a-z])+$'])(
    'the pattern %s in a schema against a long text',
    (pattern) => {
      const text = `${'a'.repeat(LONG - 1)}!`
      const schema = { type: 'string', pattern }
      within(5000, () => violationsOf(schema, text, ''))
      within(5000, () => compileSchema(schema)(text))
    },
  )

  const SEEDS = ['a', '1', 'a.', 'a@', '-', '/', '%20', '1:', '::', '{a', ':a', '0', ' ', 'P1', '\\', '~0', 'x.y@']
  it.each([
    'email',
    'hostname',
    'uri',
    'uri-reference',
    'uri-template',
    'ipv4',
    'ipv6',
    'date-time',
    'date',
    'time',
    'duration',
    'uuid',
    'json-pointer',
    'regex',
    'byte',
  ])('the format %s against long texts', (format) => {
    const check = compileSchema({ type: 'string', format })
    for (const seed of SEEDS)
      for (const text of [seed.repeat(LONG / seed.length), `http://${seed.repeat(LONG / seed.length)}!`])
        within(3000, () => check(text))
  })

  it('a list that must be unique, as long as a request may be', () => {
    const list = Array.from({ length: JSON_LIMITS.items }, (_, i) => ({ i: i % 7 ? i : { i } }))
    const schema = { type: 'array', uniqueItems: true, items: { type: 'object' } }
    within(5000, () => violationsOf(schema, list, ''))
  })

  it('filters of brackets, minus signs, quotes and dots', () => {
    for (const part of ['(', '-', 'NOT ', '"', '\\"', 'a.', 'a=1 OR ', '((a=1) AND ', '=', 'a:"\\'])
      within(1000, () => parseFilter(part.repeat(2048 / part.length)))
  })

  it('deep and wide bodies, before they are parsed', () => {
    for (const text of [
      '['.repeat(1_000_000),
      '{"a":'.repeat(200_000),
      `[${'1,'.repeat(500_000)}1]`,
      `"${'\\"'.repeat(500_000)}"`,
    ])
      within(2000, () => scanJson(text))
  })

  it('a patch that doubles what is there', () => {
    const double = Array.from({ length: 1000 }, (_, i) => ({ op: 'copy', from: '', path: `/m${i}` }))
    expect(() => jsonPatch({ a: 'x'.repeat(100) }, double)).toThrow(/copies more than/)
    within(2000, () => jsonPatch({ a: 'x'.repeat(100) }, double))
  })
})
