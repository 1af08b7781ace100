import { afterAll, beforeAll, expect, it } from 'vitest'
import { closeDesk, complaints, openDesk } from './desk.ts'

/** A desk of its own: where many gates wait, a new device is told of them in one push. */
beforeAll(openDesk, 300_000)
afterAll(closeDesk, 60_000)

import './cases/phone.ts'

it('broke no policy and threw no error on any of these pages', () => {
  expect(complaints).toEqual([])
})
