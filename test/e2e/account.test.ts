import { afterAll, beforeAll, expect, it } from 'vitest'
import { closeDesk, openDesk, unmeantComplaints } from './desk.ts'

/** Every page of the console, and what people do about their sessions, their keys, their devices and their settings. */
beforeAll(() => openDesk(), 300_000)
afterAll(closeDesk, 60_000)

import './cases/empty.ts'
import './cases/every-page.ts'
import './cases/faults.ts'
import './cases/people.ts'
// It ends the session that eva's tabs share: cases that use them come before.
import './cases/session.ts'
import './cases/notifications.ts'
import './cases/passkeys.ts'
import './cases/devices.ts'
import './cases/totp.ts'
import './cases/sso.ts'
import './cases/display.ts'
import './cases/german.ts'

it('violated no policy and threw no error on any of these pages', () => {
  expect(unmeantComplaints()).toEqual([])
})
