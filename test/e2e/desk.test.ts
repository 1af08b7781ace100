import { afterAll, beforeAll, expect, it } from 'vitest'
import { closeDesk, openDesk, unmeantComplaints } from './desk.ts'

/** What people do at the console while an operation runs: steer it, change it, decide its gates, look it up. */
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
import './cases/steering-many.ts'
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
import './cases/leaving.ts'

it('violated no policy and threw no error on any of these pages', () => {
  expect(unmeantComplaints()).toEqual([])
})
