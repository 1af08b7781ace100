import { PlanRefusal } from '../../operations/graph/refusal.ts'
import { rehearsalOf } from '../../operations/rehearsal/input.ts'
import { rehearse } from '../../operations/rehearsal/rehearse.ts'
import type { Assumptions } from '../../operations/rehearsal/types.ts'
import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import type { PackFolder } from './folder.ts'
import { planTest } from './plan.ts'

export type Rehearsed = { name: string; rehearsal: Rehearsal } | { name: string; fault: string }

/** Rehearses the plan of each test, or the named one, on a virtual clock. A test expecting a refusal has no plan. */
export const rehearseTests = (folder: PackFolder, assumed: Assumptions, only?: string): Rehearsed[] =>
  folder.tests
    .flatMap(({ value }) => value.tests)
    .filter(({ name, expect }) => (only === undefined ? expect.refused === undefined : name === only))
    .map((test) => {
      const planned = planTest(folder, test)
      if ('refused' in planned) return { name: test.name, fault: planned.refused.message }
      try {
        const answer = rehearse(rehearsalOf(planned.input, planned.made.document, assumed))
        if ('too_long' in answer) return { name: test.name, fault: `The rehearsal is too large: ${answer.too_long}.` }
        return { name: test.name, rehearsal: answer.rehearsal }
      } catch (error) {
        if (!(error instanceof PlanRefusal)) throw error
        return { name: test.name, fault: error.message }
      }
    })
