import { intent } from './operations/intent.ts'
import { plan } from './operations/plan.ts'
import { schedule } from './operations/schedule.ts'

/** Texts for intents, their plans and schedules. */
export const tPlan = { plan, intent, schedule }
