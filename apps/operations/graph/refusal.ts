import type { CodeOf, Violation } from '../../shared/errors.ts'

type PlanCode = CodeOf<'validation_error' | 'policy_denied'>
/** No plan is possible: a refusal with the places at fault. */
export class PlanRefusal extends Error {
  readonly category: 'validation_error' | 'policy_denied'
  readonly code: PlanCode
  readonly violations: Violation[]

  constructor(
    code: PlanCode,
    message: string,
    violations: Violation[] = [],
    category: PlanRefusal['category'] = 'validation_error',
  ) {
    super(message)
    this.name = 'PlanRefusal'
    this.category = category
    this.code = code
    this.violations = violations
  }
}
