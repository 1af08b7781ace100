import { afterAll, beforeAll, expect, it } from 'vitest'
import { closeDesk, complaints, openDesk } from './desk.ts'

/**
 * A separate desk: where many gates wait, one push tells a new device about all of them. A session may refresh as often
 * as a real one.
 */
beforeAll(() => openDesk({ SESSION__LIMITS__REFRESH: '20/60/30' }), 300_000)
afterAll(closeDesk, 60_000)

import './cases/phone.ts'
import './cases/reloads.ts'

it('violated no policy and threw no error on any of these pages', () => {
  // Reloads beyond the limit are meant to be refused.
  expect(complaints.filter((line) => !/session cannot be resumed|status of 429/.test(line))).toEqual([])
})
