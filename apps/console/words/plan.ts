import { intent } from './operations/intent.ts'
import { plan } from './operations/plan.ts'

/** Words of intents and their plans. */
export const tPlan = { plan, intent }
