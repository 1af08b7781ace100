import { afterAll, beforeAll, expect, it } from 'vitest'
import { closeDesk, complaints, openDesk } from './desk.ts'

/** What people do at the console while an operation runs: steer it, change it, decide its gates, keep their session. */
beforeAll(() => openDesk(), 300_000)
afterAll(closeDesk, 60_000)

import './cases/steering.ts'
import './cases/patches.ts'
import './cases/interventions.ts'
import './cases/artifacts.ts'
import './cases/gates.ts'
import './cases/loading.ts'
import './cases/inbox.ts'
import './cases/search.ts'
import './cases/bulk.ts'
import './cases/views.ts'
import './cases/exports.ts'
import './cases/overview.ts'
import './cases/matrix.ts'
import './cases/resources.ts'
import './cases/many.ts'
import './cases/timeline.ts'
import './cases/pictures.ts'
import './cases/schedules.ts'
import './cases/again.ts'
import './cases/freezes.ts'
import './cases/every-page.ts'
import './cases/faults.ts'
import './cases/people.ts'
// It ends the session that eva's tabs share: cases that use them come before.
import './cases/session.ts'
import './cases/notifications.ts'
import './cases/passkeys.ts'
import './cases/devices.ts'
import './cases/totp.ts'
import './cases/display.ts'
import './cases/german.ts'

it('violated no policy and threw no error on any of these pages', () => {
  // The tests blocked the stream, cut the network and answered 599; errors that this caused are reported, too.
  const meant =
    /ERR_FAILED|ERR_INTERNET_DISCONNECTED|status of 599|code of this page could not be fetched|session cannot be resumed/
  expect(complaints.filter((line) => !meant.test(line))).toEqual([])
})
