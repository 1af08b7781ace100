import { expect, test } from 'vitest'
import { named } from '../../db/rows.ts'

test('named parameters become numbers, in the order in which the names first appear', () => {
  const { text, values } = named("-- of :nobody\nselect :b::text, ':c', a::int where x = :a and y = :b\n")
  expect(text).toBe("select $1::text, ':c', a::int where x = $2 and y = $1\n")
  expect(values({ a: 1, b: null })).toEqual([null, 1])
})

test('a name without a value, and a value without a name, are refused', () => {
  const { values } = named('select :a')
  expect(() => values({})).toThrow(':a')
  expect(() => values({ a: 1, b: 2 })).toThrow(':b')
})
