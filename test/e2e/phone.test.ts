import { afterAll, beforeAll, expect, it } from 'vitest'
import { closeDesk, complaints, openDesk } from './desk.ts'

/** A separate desk: where many gates wait, one push tells a new device about all of them. */
beforeAll(openDesk, 300_000)
afterAll(closeDesk, 60_000)

import './cases/phone.ts'

it('violated no policy and threw no error on any of these pages', () => {
  expect(complaints).toEqual([])
})
