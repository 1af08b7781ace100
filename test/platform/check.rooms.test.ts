import { describe, expect, it } from 'vitest'
import { roomProblems, staleRooms } from '../../apps/platform/check/rooms.ts'

const rooms = { ROOMS: { 'apps/shop': [['carts'], ['orders']] }, MOST_FILES: 2 }
const files = (...names: string[]) => names.map((name) => `apps/shop/${name}.ts`)

describe('the rooms of the tree', () => {
  it('are the listed ones', () => expect(staleRooms()).toEqual([]))

  it.each<[what: string, files: string[], problem: RegExp]>([
    ['one that is not listed', files('carts/a', 'orders/a', 'stock/a'), /^apps\/shop\/stock: .*does not list/],
    ['one that is gone', files('carts/a'), /^apps\/shop\/orders: .*no files/],
    ['one that is full', files('carts/a', 'orders/a', 'orders/b', 'orders/c'), /^apps\/shop\/orders: 3 files/],
    ['one that lies too deep', [...files('carts/a', 'orders/a'), 'apps/other/a/b/c/d.ts'], /nested too deeply/],
  ])('name %s', (_, found, problem) => {
    expect(roomProblems(found, rooms)).toEqual([expect.stringMatching(problem)])
  })
})
