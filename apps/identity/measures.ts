import type { Measures } from './control/changes.ts'
import { grantMeasure } from './grants/measures.ts'
import { memberMeasure } from './groups/measures.ts'
import { credentialMeasure } from './machines/measures.ts'
import { createMeasure, enableMeasure, recoverMeasure, resetMeasure } from './users/measures.ts'

/** Every kind of change that may need two administrators. */
export const MEASURES: Measures = {
  'user.create': createMeasure,
  'user.enable': enableMeasure,
  'user.reset': resetMeasure,
  'user.recover': recoverMeasure,
  'grant.create': grantMeasure,
  'member.add': memberMeasure,
  'machine.credential': credentialMeasure,
}
