import { expect, it } from 'vitest'
import { thirdsOf } from './memory.ts'

const COUNT = 300
const samples = (held: (n: number) => number) => Array.from({ length: COUNT }, (_, n) => ({ app: held(n) }))

it('a process that holds a little more at every sample grows; one with a fluctuating heap or a filled cache does not', () => {
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

it('a process that started late is judged from its start', () => {
  expect(thirdsOf('app', [...samples(() => 0), ...samples(() => 120)]).thirds[2]).toBe(120)
  expect(
    thirdsOf(
      'gone',
      samples(() => 120),
    ),
  ).toEqual({ name: 'gone', thirds: [0, 0, 0], grows: false })
})
