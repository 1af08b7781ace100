import { expect, it } from 'vitest'
import { thirdsOf } from './memory.ts'

const COUNT = 300
const samples = (held: (n: number) => number) => Array.from({ length: COUNT }, (_, n) => ({ app: held(n) }))

it('a process that holds a little more at every look grows; one whose heap comes and goes, or that filled a cache, does not', () => {
  expect(
    thirdsOf(
      'app',
      samples((n) => 150 + n),
    ).grows,
  ).toBe(true)
  expect(
    thirdsOf(
      'app',
      samples((n) => 150 + (n % 40) * 3),
    ).grows,
  ).toBe(false)
  const filled = thirdsOf(
    'app',
    samples((n) => 150 + Math.min(n, COUNT / 3)),
  )
  expect(filled.grows).toBe(false)
  expect(filled.thirds).toEqual([200, 250, 250])
})

it('a process that began late is judged by what it held since', () => {
  expect(thirdsOf('app', [...samples(() => 0), ...samples(() => 120)]).thirds[2]).toBe(120)
  expect(
    thirdsOf(
      'gone',
      samples(() => 120),
    ),
  ).toEqual({ name: 'gone', thirds: [0, 0, 0], grows: false })
})
