import { expect, it } from 'vitest'
import { compileSchema, schemaFault } from '../../apps/shared/data/json-schema.ts'

const schemaOf = (name: string) => ({ type: 'object', properties: { [name]: { type: 'integer', default: 1 } } })

it('a schema is compiled once for all nodes that have it, and never mistaken for another', () => {
  const check = compileSchema(schemaOf('serial'))
  expect(compileSchema(schemaOf('serial'))).toBe(check)
  expect(compileSchema(schemaOf('other'))).not.toBe(check)
  expect(check({ serial: 'x' })).toMatchObject([{ pointer: '/serial' }])
  expect(check({ other: 'x' })).toEqual([])
  const filled = {}
  compileSchema(schemaOf('serial'), { defaults: true })(filled)
  const plain = {}
  check(plain)
  expect([filled, plain]).toEqual([{ serial: 1 }, {}])
})

it('the faults of five thousand nodes with one schema cost little more than those of one', () => {
  const begun = process.cpuUsage()
  for (let n = 0; n < 5000; n++) expect(schemaFault(structuredClone(schemaOf('serial')))).toBeUndefined()
  const { user, system } = process.cpuUsage(begun)
  // A compilation of each took more than four seconds.
  expect((user + system) / 1e6).toBeLessThan(2)
  for (const _ of [1, 2]) expect(schemaFault({ type: 'objekt' })).toMatch(/type/)
})

it('keeps only the newest schemas', () => {
  const first = compileSchema(schemaOf('n0'))
  for (let n = 1; n <= 100; n++) compileSchema(schemaOf(`n${n}`))
  expect(compileSchema(schemaOf('n0'))).not.toBe(first)
})
