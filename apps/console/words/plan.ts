import { intent } from './operations/intent.ts'
import { plan } from './operations/plan.ts'
import { schedule } from './operations/schedule.ts'

/** Words of intents, their plans and schedules. */
export const tPlan = { plan, intent, schedule }
