import { type Code, type Problem, problemFrom } from '../shared/contracts/client/problem.ts'

/** A refusal or an outage, with the server's explanation. Status 0: no answer arrived. */
export class ProblemError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ProblemError'
    this.problem = problem
  }

  /** The exact reason, from the closed table of /docs/errors. */
  get code(): Code {
    return this.problem.code
  }
}

export const problemOf = async (answer: Response): Promise<Problem> =>
  problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after'))

/** Returns the body of an answer; throws a ProblemError for a refusal. */
export const read = async <T>(
  pending: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<NonNullable<T>> => {
  const { data, error, response } = await pending
  if (data !== undefined && data !== null && response.ok) return data
  throw new ProblemError(problemFrom(response.status, error, response.headers.get('retry-after')))
}
