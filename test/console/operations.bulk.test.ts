import { describe, expect, it } from 'vitest'
import type { OperationRow } from '../../apps/console/api/types.ts'
import type { Tried } from '../../apps/console/command/send.ts'
import { commandOn, partOf } from '../../apps/console/operations/bulk.ts'
import type { Effect } from '../../apps/console/operations/effects.tsx'
import { problemFrom } from '../../apps/shared/contracts/client/problem.ts'

const rows = ['one', 'two', 'three'].map((operation_id) => ({ operation_id }) as OperationRow)
const triedOf = (...all: [string, Tried<Effect>][]) => new Map(all)
const refusal = (status: number, code: string): Tried<Effect> => ({
  effect: null,
  problem: problemFrom(status, { code, category: 'invalid_state_transition', detail: 'no' }),
})
const effect: Tried<Effect> = { effect: { running: [], not_started: 2 }, problem: null }
const ids = (parts: readonly { row: OperationRow }[]) => parts.map(({ row }) => row.operation_id)

describe('operations steered together', () => {
  it('are those with an effect; a refused one is left out with its reason, and none is forgotten', () => {
    const tried = triedOf(['one', effect], ['two', refusal(409, 'already_paused')])
    const { able, out, asking, stale } = partOf(rows, tried, 'pause')
    expect([ids(able), ids(out), asking, stale]).toEqual([['one'], ['two'], 1, false])
    expect(able[0]?.effect).toEqual(effect.effect)
    expect(out[0]?.problem.code).toBe('already_paused')
  })

  it('include one whose effect could not be shown only for a pause', () => {
    const tried = triedOf(['one', refusal(503, 'overloaded')])
    expect(ids(partOf(rows, tried, 'pause').able)).toEqual(['one'])
    for (const command of ['resume', 'cancel'] as const) {
      const { able, out } = partOf(rows, tried, command)
      expect([ids(able), ids(out)]).toEqual([[], ['one']])
    }
  })

  it('wait for the password instead of being left out', () => {
    const { able, out, stale } = partOf(rows, triedOf(['one', refusal(403, 'reauth_required')]), 'pause')
    expect([able, out, stale]).toEqual([[], [], true])
  })

  it('get the mode only with a cancel, and accept no changed target', () => {
    expect(commandOn('a/b', 'cancel', 'compensate', 'why')).toEqual({
      path: '/v1/operations/a%2Fb/cancel',
      body: { mode: 'compensate', reason: 'why' },
    })
    for (const command of ['pause', 'resume'] as const)
      expect(commandOn('a', command, 'graceful', 'why').body).toEqual({ reason: 'why' })
  })
})
