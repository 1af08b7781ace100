import { intent } from './en/intent.ts'
import { plan } from './en/plan.ts'

/** Words of intents and their plans. */
export const tPlan = { plan, intent }
