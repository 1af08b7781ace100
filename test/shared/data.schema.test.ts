import { expect, it } from 'vitest'
import { SignalBody } from '../../apps/shared/contracts/engine/signals.ts'
import { NewCredential, NewMachine } from '../../apps/shared/contracts/identity/machines.ts'
import { NewUser } from '../../apps/shared/contracts/identity/users.ts'
import { ProposeBody } from '../../apps/shared/contracts/operations/patches.ts'
import { When } from '../../apps/shared/contracts/operations/schedules.ts'
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

const change = (...changes: object[]) => ({ base_revision: 1, reason: 'x', changes })
const at = '/changes/0'
it.each([
  [ProposeBody, change({ op: 'update_node', node_id: 'a', set: { kind: 'wait' } }), [`${at}/set/kind`]],
  [ProposeBody, change({ op: 'paint', node_id: 'a' }), [`${at}/op`]],
  [ProposeBody, change({ node_id: 'a' }), [`${at}/op`]],
  [ProposeBody, change({ op: 'add_gate' }), [`${at}/gate`]],
  [
    ProposeBody,
    change({ op: 'paint' }, { op: 'update_node', node_id: 'a', set: { kind: 'wait' } }, { op: 'add_gate' }),
    [`${at}/op`, '/changes/1/set/kind', '/changes/2/gate'],
  ],
  [When, { every_s: 59 }, ['/every_s']],
  [When, { cron: '0 22 * * *' }, ['/timezone']],
  [When, { at: 'soon', more: 1 }, ['/at', '/more']],
  [SignalBody, { type: 'pause' }, ['/type']],
])('names the faults of the kind that a value is meant to be: %#', (schema, value, pointers) => {
  const named = compileSchema(schema)(value).map(({ pointer }) => pointer)
  expect(named.sort()).toEqual(pointers)
})

it.each([
  [NewMachine, { name: 'Foo', owners: [] }, /^must be 1 to 50 small letters/],
  [NewUser, { username: 'a b' }, /^must be letters, digits/],
  [NewCredential, { networks: ['203.0.113.0'] }, /^must be a network such as/],
])('a name that does not fit is told so in words: %#', (schema, value, words) => {
  const [fault] = compileSchema(schema)(value).filter(({ code }) => code === 'pattern')
  expect(fault?.message).toMatch(words)
})

const kind = (name: string) => ({
  type: 'object',
  properties: { [name]: { type: 'integer' } },
  required: [name],
  additionalProperties: false,
})
const union = { anyOf: [kind('a'), kind('b')] }
it.each([
  ['items of a list', { type: 'array', items: union }, [{ a: 'x' }, { a: 1 }, { b: 'x' }], ['/0/a', '/2/b']],
  [
    'values of a map',
    { type: 'object', additionalProperties: union },
    { p: { a: 'x' }, pq: { b: 'x' } },
    ['/p/a', '/pq/b'],
  ],
])('%s of different kinds each keep their own faults', (_, schema, value, pointers) => {
  const named = compileSchema(schema)(value).map(({ pointer }) => pointer)
  expect(named.sort()).toEqual(pointers)
})

it('keeps only the newest schemas', () => {
  const first = compileSchema(schemaOf('n0'))
  for (let n = 1; n <= 100; n++) compileSchema(schemaOf(`n${n}`))
  expect(compileSchema(schemaOf('n0'))).not.toBe(first)
})
